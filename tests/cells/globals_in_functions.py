# reads: counter print total
# binds: bump counter total
def bump():
    global counter, total
    counter += 1
    total = counter
    print(total)
bump()
