# reads: cells d grid item j look print rows
# binds: squares table
squares = [i * j for i in rows]
table = {key: [cell for cell in look(key, value)] for key in grid for value in key}
print(item, {d for item in cells}, (squares for squares in squares))
