# reads: connect gather print session source worker
# binds: conn fetch item results
# attributes: conn.get
async def fetch(url):
    async with session as s:
        return [await part async for part in s.get(url)]
async with connect() as conn:
    results = await gather(fetch(1), conn.get(2))
async for item in source:
    print(item, results)
await worker
