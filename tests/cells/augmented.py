# reads: counts rank total
# binds: fresh total
total += rank
fresh = 0
fresh += total
counts[rank] += 1
