import asyncio
async def wait(x):
    await asyncio.sleep(0)
    return x + 1
async def stream(n):
    for i in range(n):
        yield await wait(i)
def count(n):
    yield from range(n)
def chain(n):
    yield from count(n)
    return n
class Door:
    async def __aenter__(self):
        return "in"
    async def __aexit__(self, *error):
        return False
async def main():
    async with Door() as where:
        return where, [x async for x in stream(3)]
# %%
%%parallel out=back
back = await main(), await wait(1), list(chain(3)), await asyncio.gather(wait(1), wait(2))
# %%
assert all(b == (("in", [1, 2, 3]), 2, [0, 1, 2], [2, 3]) for b in back), back
