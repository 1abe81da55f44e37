# reads: acquire handle print release
# perhaps: handle
# binds: closed handle line result
# attributes: handle.read
try:
    handle = acquire()
    result = handle.read()
finally:
    closed = True
    release(handle)
print(result, closed)
try:
    line = result
except ():
    raise
else:
    print(line)
print(line)
