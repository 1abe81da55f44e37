# reads: found items print
# perhaps: found
# binds: found item
for item in items:
    if item:
        break
else:
    found = None
print(found)
