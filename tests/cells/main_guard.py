# reads: __name__ out rank run
# perhaps: run
# binds: run
if __name__ == "__main__":
    run = rank
out[rank] = run
