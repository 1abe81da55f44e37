"""The cases, as a scratch."""
import numpy as np, torch, pytest, mmap, multiprocessing as mp
from multiprocessing import shared_memory
from conftest import in_segment

def test_22(notebook):
    a=notebook['a']=np.zeros(6); t=notebook['t']=torch.from_numpy(a)
    s=notebook['s']=torch.zeros(10_000_000); v=notebook['v']=s.numpy(); w=notebook['w']=v[5:8]
    notebook.run("t[rank]=1; a[rank+2]=2; s[5+rank]=rank+10",'a','t','s',ranks=2)
    assert a.tolist()==[1,1,2,2,0,0]==t.tolist()
    assert v[5:7].tolist()==[10,11]==w[:2].tolist()==s[5:7].tolist()
    assert notebook['a'] is a and np.shares_memory(a,t.numpy()) and np.shares_memory(v,s.numpy())
def test_23(notebook):
    n=notebook
    base=n['base']=torch.arange(12.); n['head'],n['tail'],n['mat']=base[:6],base[3:],base.view(3,4)
    nb=n['nb']=np.arange(12.); n['nh'],n['nt']=nb[:6],nb[3:].reshape(3,3); n['ok']=torch.zeros(2)
    del nb
    r=n.run("""
head.mul_(10); nh*=10
ok[0]=bool(tail[0] == 30 and mat[1, 1] == 50 and nt[0, 2] == 50)
tail[8]=99; nt[2,2]=99
ok[1]=bool(mat[2,3]==99)
""",'head','tail','mat','nh','nt','ok')
    assert n['ok'].tolist()==[1,1]
    assert in_segment(n,n['nb']) and in_segment(n,base)
    after = (base[3].item(), n['tail'][0].item(), n['mat'][2, 3].item(), float(n['nb'][3]), float(n['nt'][0, 0]), float(n['nb'][11]))
    assert after == (30, 30, 99, 30, 30, 99), after
    n.run("tail.add_(1000)","tail")
    assert base[3] == 1030 and base[2] == 20 and n['mat'][0, 3] == 1030
def test_24(notebook):
    n=notebook
    x=n['x'] = np.zeros((4, 3)); n['col'] = x[:, 1]; n['rev'] = x[::-1]; n['tr'] = x.T
    n['f'] = np.asfortranarray(np.zeros((4, 2))); n['wide'] = np.broadcast_to(np.arange(3.), (4, 3))
    t=n['t'] = torch.zeros(3, 4); n['tt'] = t.t(); n['ev'] = t[:, ::2]; n['ex'] = torch.zeros(3, 1).expand(3, 5)
    n['win'] = torch.zeros(6).as_strided((4, 3), (1, 1))
    n['ok'] = torch.zeros(4, 5)
    del x
    n.run("""
for rank in range(4):
    col[rank] = 5
    if rank == 0: rev[0, 0] = 8          # x[3, 0]
    tr[2, rank] = 9                      # x[rank, 2]
    f[rank] = rank
    tt[rank, 1] = 1                      # t[1, rank]
    if rank == 3: ev[2, 1] = 7; ex[1, 0] = 4; win[3, 2] = 6
    ok[rank] = torch.tensor([f.flags.f_contiguous, not wide.flags.writeable and wide.sum() == 12,
                         rev.strides[0] < 0, tt.stride() == (1, 4), ex.stride() == (1, 0)])
""",*n.namespace)
    assert n['ok'].bool().all(), n['ok']
    x=n['x']; f=n['f']; ex=n['ex']
    assert x.tolist() == [[0, 5, 9], [0, 5, 9], [0, 5, 9], [8, 5, 9]]
    assert f.flags.f_contiguous and f.tolist() == [[r, r] for r in range(4)]
    assert t.tolist() == [[0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 7, 0]]
    assert ex[1].tolist() == [4] * 5 and ex[0, 0] == 0 and n['win'][3, 2] == 6
    assert in_segment(n,x) and in_segment(n,t)
def test_26(notebook):
    n=notebook
    n['e1'], n['e2'], n['e3'] = torch.zeros(0, 4), torch.empty(1, 0, dtype=torch.int32), torch.tensor([])
    n['n1'], n['n2'] = np.zeros((1, 0), dtype=np.complex64), np.empty(0, dtype="U3")
    n['full'] = torch.arange(6.); n['hollow'] = n['full'][6:]; n['s0'] = torch.tensor(3); n['z0'] = np.array(2.5)
    n['ok'] = torch.zeros(2)
    n['k']=[np.zeros(3,'S0'), np.zeros((4,3))[4:,::-1], np.zeros((0,0)).T]
    n.run("""
shapes = [tuple(v.shape) for v in (e1, e2, e3, n1, n2, hollow, s0, z0)]
ok[rank] = shapes == [(0, 4), (1, 0), (0,), (1, 0), (0,), (0,), (), ()] and e2.dtype == torch.int32 and n2.dtype == "U3"
if rank == 0:
    s0 += 4
    z0 -= 1
""",*n.namespace,ranks=2)
    assert n['ok'].tolist() == [1, 1]
    assert n['s0'].item() == 7 and float(n['z0']) == 1.5
    assert n['hollow'].numel() == 0 and n['hollow'].storage_offset() == 6
def test_27(notebook):
    n=notebook
    names = "float64 float32 float16 bfloat16 float8_e4m3fn float8_e5m2 complex64 complex128 bool int8 uint8 int16 uint16 int32 uint32 int64 uint64".split()
    T = n['T']={n: torch.zeros(2, dtype=getattr(torch, n)) for n in names}
    N = n['N']={d: np.zeros(2, dtype=d) for d in ["?", "i1", ">i4", "u8", "f2", ">f8", "c16", "g", "G", "M8[s]", "m8[ms]", "S4", "U5", "V3"]}
    n['ok'] = torch.zeros(2)
    n.run("""
for n, v in T.items():
    v[rank] = 1
for d, v in N.items():
    v[rank] = {"S4": b"ab", "U5": "é✓", "V3": b"xyz"}.get(d, 1)
ok[rank] = all(str(v.dtype) == "torch." + n for n, v in T.items()) and all(v.dtype == np.dtype(d) for d, v in N.items())
""",*n.namespace,ranks=2)
    assert n['ok'].tolist() == [1, 1]
    for n, v in T.items():
        assert v.dtype == getattr(torch, n) and v.to(torch.complex128).tolist() == [1, 1], n
    for d, v in N.items():
        want = {"S4": b"ab", "U5": "é✓", "V3": np.void(b"xyz")}.get(d, np.ones(1, dtype=d)[0])
        assert v.dtype == np.dtype(d) and (v == want).all(), d
def test_30(notebook):
    n=notebook
    w=n['w']=torch.ones(2, requires_grad=True); g=n['g'] = torch.ones(2, requires_grad=True); (g * 3).sum().backward()
    n['out']=torch.zeros(2,4)
    n.run("""
(w * 2).sum().backward()
out[rank] = torch.tensor([w.is_leaf and w.requires_grad, w.grad.sum(), g.grad.sum(), 0])
with torch.no_grad():
    w[rank] += rank + 1
""",*n.namespace,ranks=2)
    assert n['out'].tolist()==[[1,4,6,0]]*2 and w.grad is None and w.tolist()==[2,3] and g.grad.tolist()==[3,3]
    from nbshm.refusals import Unsendable
    n['y']=w*3
    with pytest.raises(Unsendable): n.place('y')
    n['m']=torch.zeros(3,device='meta')
    with pytest.raises(Unsendable): n.place('m')
    n['m']=None
def test_35(notebook):
    n=notebook
    n['rec'] = np.zeros(4, dtype=[("id", "i4"), ("xy", "f8", (2,)), ("tag", "U3")]); n['ids'] = n['rec']["id"]
    n['words'] = np.array(["aa", "bb", "cc", "dd"])
    n['obj'] = np.array([{"k": 1}, None, "txt", [1, 2]], dtype=object)
    n['mixed'] = np.array([(1, "p"), (2, "q")], dtype=[("n", "i4"), ("o", object)])
    n['vs'] = np.array(["x", "y" * 50], dtype=np.dtypes.StringDType())
    n['out'] = torch.zeros(2, 4)
    n['ra']=np.rec.array([(1,2.),(3,4.)],dtype=[('a','i4'),('b','f8')])
    n['ma']=np.ma.array([1.,2,3],mask=[0,1,0]); n['mb']=np.ma.array([1.,2,3])
    n.run("""
rec[rank] = (rank + 1, (rank, -rank), "r%d" % rank)
rec["xy"][rank + 2] = 5
words[rank] = "Z" + str(rank)
out[rank] = torch.tensor([obj[0]["k"] + len(obj[3]), obj[1] is None, len(vs[1]), len(mixed["o"][1]) + mixed["n"].sum()])
ra.a[rank]=rank+7; assert type(ra) is np.recarray
assert type(ma) is np.ma.MaskedArray
ma[2*rank]=9.
if rank==0: ma.mask[0]=True
mb[rank]=8
assert mb.mask is np.ma.nomask
""",*n.namespace,ranks=2)
    rec=n['rec']; 
    assert rec["id"].tolist() == [1, 2, 0, 0] == n['ids'].tolist() and rec["tag"].tolist() == ["r0", "r1", "", ""]
    assert rec["xy"].tolist() == [[0, 0], [1, -1], [5, 5], [5, 5]] and n['words'].tolist() == ["Z0", "Z1", "cc", "dd"]
    assert n['out'].tolist() == [[3, 1, 50, 4]] * 2
    assert n['ra'].a.tolist()==[7,8]
    assert n['ma'].data.tolist()==[9,2,9], n['ma']
    assert n['mb'].tolist()==[8,8,3]
def test_37(notebook, tmp_path):
    n=notebook
    n['ro'] = np.arange(3.); n['ro'].flags.writeable = False
    f=tmp_path/"d.bin"
    n['mm'] = np.memmap(f, dtype="i8", mode="w+", shape=(4,))
    n['cow'] = np.memmap(f, dtype="i8", mode="c", shape=(4,))
    n['r'] = np.memmap(f, dtype="i8", mode="r", shape=(2,), offset=16)
    n['sl'] = n['mm'][1::2]
    n['asarr']=np.asarray(n['mm'])
    n['tor']=torch.from_numpy(n['cow'])
    n['out'] = torch.zeros(2, 3)
    n.run("""
try:
    ro[0] = 1
except ValueError:
    out[rank, 0] = 1
mm[rank] = rank + 5
mm.flush()
out[rank, 1] = ro.sum()
out[rank, 2] = all(type(v) is np.memmap for v in (mm, cow, r, sl)) and sl.shape==(2,) and r.shape==(2,) and not r.flags.writeable
assert asarr[rank]==rank+5
sl[1]=77
assert mm[3]==77 and r[1]==77
""",*n.namespace,ranks=2)
    assert n['out'].tolist()==[[1,3,1]]*2
    assert n['mm'].tolist()==[5,6,0,77] and np.fromfile(f,'i8').tolist()==[5,6,0,77]
from multiprocessing import resource_tracker
resource_tracker.ensure_running(); _warm=mp.get_context('spawn').Array('d',3,lock=False)
def test_foreign_shared(notebook):
    n=notebook
    shm=shared_memory.SharedMemory(create=True,size=4096)
    try:
        a=n['a']=np.ndarray((4,),'f8',buffer=shm.buf); 
        other=shared_memory.SharedMemory(shm.name,track=False) if hasattr(shm,'track') else None
        t=n['t']=torch.zeros(3).share_memory_()
        arr=mp.get_context('spawn').Array('d',3,lock=False); b=n['b']=np.frombuffer(arr,dtype='d')
        _,pl=n.place('a','t','b')
        assert not any(s.back for s in pl._spots) and len(pl._spots)==3, pl._spots
        pl.close()
        r=n.run("a[rank]=rank+1; t[rank]=3; b[rank]=5; result=(a,t,b)",'a','t','b',ranks=2)
        assert a.tolist()==[1,2,0,0] and t.tolist()==[3,3,0] and b.tolist()==[5,5,0]
        assert r[0][1].data_ptr()==t.data_ptr() and np.shares_memory(r[1][0],a)
        import gc
        n.namespace.clear(); del a,b,arr,t,r,_,pl; gc.collect()
    finally:
        shm.close(); shm.unlink()
def test_snapshot(notebook):
    n=notebook
    x=n['x']=np.arange(1000.)
    r=n.run("""
x[rank]=-1
result=x[:3]
""",'x',ranks=2,is_shared=lambda a: False)
    assert x[:2].tolist()==[0,1] and r[0].tolist()==[-1,1,2] and r[1].tolist()==[0,-1,2]
def test_readonly_storage(notebook):
    import warnings
    n=notebook
    m=mmap.mmap(-1,4096,prot=mmap.PROT_READ)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        t=n['t']=torch.frombuffer(m,dtype=torch.uint8)
    r=n.run("t[0]=1; result=int(t[0])",'t')
    assert r==[1] and t[0]==0
def test_many(notebook):
    n=notebook
    n['many']=[torch.full((4,),float(i)) for i in range(3000)]
    r=n.run("result=sum(t.add_(1).sum().item() for t in many)","many")
    assert all(t.tolist()==[i+1.]*4 for i,t in enumerate(n['many']))
    r=n.run("result=many[5]","many")
    assert r[0].untyped_storage() is n['many'][5].untyped_storage()
@pytest.mark.filterwarnings('ignore:Sparse')
def test_special(notebook):
    n=notebook
    c=torch.ones(3,dtype=torch.complex64)*1j
    n['cj']=c.conj(); n['im']=n['cj'].imag
    n['att']=torch.zeros(2); n['att'].tag={'a':1}
    n['par']=torch.nn.Parameter(torch.ones(2)); n['par'].tag='p'; n['par'].grad=torch.ones(2)*4
    n['sp']=torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3., 4., 5.], (2, 3)).coalesce()
    n['raw']=torch.sparse_coo_tensor([[0,0],[1,1]],[1.,2.],(2,3),requires_grad=True)
    n['csr']=torch.eye(3).to_sparse_csr()
    n['lin']=torch.nn.Linear(2,2)
    r=n.run("""
assert cj.is_conj() and im.is_neg() and cj[0]==-1j, (cj.is_conj(), im.is_neg())
assert att.tag=={'a':1} and par.tag=='p' and type(par) is torch.nn.Parameter and par.grad.tolist()==[4,4]
par.grad.add_(1)
assert sp.is_coalesced() and sp.to_dense()[0,2]==3 and not raw.is_coalesced() and raw.requires_grad and raw.to_dense()[0,1]==3
assert csr.layout is torch.sparse_csr
sp._values()[0]=9; csr.values()[0]=9
lin.weight.data[0,0]=42
result=(cj,att,par,sp,raw,csr,lin)
""",*n.namespace)
    assert n['par'].grad.tolist()==[5,5] and n['sp'].to_dense()[0,2]==9 and n['lin'].weight[0,0]==42
    assert r[0][0].is_conj() and r[0][6].weight.data_ptr()==n['lin'].weight.data_ptr()

import resource
def test_fsize(notebook):
    n=notebook
    from nbshm.errors import NoRoom
    big=n['big']=torch.zeros(2_500_000); n['arr']=np.zeros(300_000); n['small']=torch.zeros(2)
    s,h=resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE,(1<<20,h))
    try:
        with pytest.raises(NoRoom, match="'big'.*9.5 MiB") as e: n.place('big','small')
        with pytest.raises(NoRoom, match="'arr'.*2.3 MiB") as e: n.place('arr','small')
        print(e.value)
        n['many']=[torch.ones(200_000) for _ in range(4)]
        n.run("small[rank]=1",'small','many')
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE,(s,h))
    assert big.sum()==0 and n['small'].tolist()==[1,0]
def test_nofile(notebook):
    n=notebook
    s,h=resource.getrlimit(resource.RLIMIT_NOFILE)
    import os
    resource.setrlimit(resource.RLIMIT_NOFILE,(100,h))
    try:
        n['many']=[torch.ones(2_100_000) for _ in range(60)]
        import nbshm.memory.limits as L; L_real=resource.getrlimit
        r=n.run("result=float(many[59][-1])",'many')
        assert r==[1.]
        assert all(in_segment(n,t) for t in n['many'])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE,(s,h))
def test_use_counts(notebook):
    n=notebook
    # DLPack consumer, numpy views: not moved
    a=n['a']=torch.zeros(3); v=np.from_dlpack(a)
    b=n['b']=torch.zeros(3); w=b.numpy()
    c=n['c']=torch.zeros(1_000_000); rows=[c[5:]]
    d=n['d']=torch.zeros(3); e=torch.from_dlpack(d)
    l=n['l']=torch.nn.Linear(600,600); loss=l(torch.ones(1,600)).sum()
    n.run("a[0]=1;b[0]=1;c[5]=1;d[0]=1",*n.namespace)
    assert not in_segment(n,a) and v[0]==1 and not in_segment(n,b) and w[0]==1 and in_segment(n,c) and rows[0][0]==1
    assert not in_segment(n,d) and e[0]==1
    del loss
    n.run("l.weight.data[0,0]=5",'l')
    assert in_segment(n,l.weight) and l.weight[0,0]==5
