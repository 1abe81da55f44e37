# reads: data
# binds: settings show
def show():
    return settings, data
settings = 1
