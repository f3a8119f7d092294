"""An asyncio server and client in one process: streams over TCP and a Unix socket, tasks, timeouts, a thread pool."""
import asyncio
import os

from check import done, fail, progress, stopped, tick

directory = os.path.dirname(os.path.abspath(progress))


async def answer(reader, writer):
    while line := await reader.readline():
        await asyncio.sleep(0.001)
        writer.write(b"%d\n" % (int(line) * 3))
        await writer.drain()
    writer.close()


async def ask(reader, writer, number):
    writer.write(b"%d\n" % number)
    return int(await asyncio.wait_for(reader.readline(), 60))


async def main():
    tcp = await asyncio.start_server(answer, "127.0.0.1", 0)
    unix = await asyncio.start_unix_server(answer, os.path.join(directory, "socket"))
    a = await asyncio.open_connection(*tcp.sockets[0].getsockname())
    b = await asyncio.open_unix_connection(os.path.join(directory, "socket"))
    number = 0
    while not stopped():
        number += 1
        one, two, three = await asyncio.gather(ask(*a, number), ask(*b, number + 1), asyncio.to_thread(lambda: number * 3))
        if (one, two, three) != (number * 3, number * 3 + 3, number * 3):
            fail("asked %d, got %r" % (number, (one, two, three)))
        fresh = await asyncio.open_connection(*tcp.sockets[0].getsockname())
        if await ask(*fresh, 5) != 15:
            fail("a new connection")
        fresh[1].close()
        tick()
    a[1].close()
    b[1].close()
    tcp.close()
    unix.close()


asyncio.run(main())
done()
