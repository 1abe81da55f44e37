# reads: data len print read y
# perhaps: y
# binds: block n y
if (n := len(data)) > 10:
    print(n)
while block := read():
    print(block)
print(block, [y := value for value in data], y)
