# reads: next print queue
# binds: task tasks
# attributes: tasks.append
tasks = []
while 1:
    task = next(queue)
    tasks.append(task)
    if task is None: break
print(task)
