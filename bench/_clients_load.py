"""The Python client under load, the control of bench/clients.py: _clients_load.py PORT CONNECTIONS

Has the same turns as `_clients_load.cpp`, in another rhythm: each frame is read as soon as it is there, since an event
loop waits for its sockets. The C++ program looks 60 times a second, as a game does, and takes many frames at once.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path

# Run as a script, Python looks for modules beside it, and not where `bench` is.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from trunkline.wires.tryll.drive import RemoteAgent, Tryll
from trunkline.wires.tryll.messages import GenerateParams, GraphDescription, NodeDescription

TEXT = "Who lives in the old mill by the river, and who has the key to it?"
GRAPH = GraphDescription((NodeDescription("say", GenerateParams("mock", stream=True)),), "say")


async def play(agent: RemoteAgent, turns: int) -> None:
    for _ in range(turns):
        heard = 0
        async for piece in agent.stream(TEXT):
            heard += len(piece)
        if heard != len("You said: " + TEXT):
            raise AssertionError("the answer is not what it should be")


async def main(port: int, connections: int) -> None:
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        agents = []
        for _ in range(connections):
            client = await stack.enter_async_context(Tryll("127.0.0.1", port))
            agents.append(await client.create_agent(GRAPH))
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            await asyncio.gather(*(play(agent, int(line)) for agent in agents))
            print("done", flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
