/**
 * Servers that tests need beside the real one: one that a connection can be cut to, and one that says what it is told.
 */

import { createServer, connect as connectTcp, type AddressInfo, type Server, type Socket } from "node:net";

import { decode, encode, frame, Framer, type Init, type MessageBody } from "trunkline-tryll";

export interface Place {
  readonly port: number;
  close(): void;
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return (server.address() as AddressInfo).port;
}

/** A way to a server that can be cut, and closed for a while. */
export class Road implements Place {
  private readonly ends = new Set<Socket>();
  private closed = false;

  private constructor(
    private readonly server: Server,
    readonly port: number,
  ) {}

  static async to(port: number): Promise<Road> {
    const server = createServer((near) => {
      const far = connectTcp({ host: "127.0.0.1", port });
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const) {
        road.ends.add(one);
        one.on("error", () => {});
        one.on("close", () => {
          road.ends.delete(one);
          other.destroy();
        });
        one.pipe(other);
      }
      if (road.closed) near.destroy();
    });
    const road: Road = new Road(server, await listening(server));
    return road;
  }

  cut(): void {
    for (const end of [...this.ends]) end.destroy();
  }

  block(closed: boolean): void {
    this.closed = closed;
    if (closed) this.cut();
  }

  close(): void {
    this.cut();
    this.server.close();
  }
}

/** A server of which every frame is known: it begins with `first`, and answers as it is told. */
export async function fake(
  first: Init<MessageBody> | Uint8Array | null,
  answers: (asked: MessageBody) => (Init<MessageBody> | Uint8Array)[] = () => [],
): Promise<Place> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    const framer = new Framer();
    if (first !== null) socket.write(first instanceof Uint8Array ? first : frame(encode(first)));
    socket.on("data", (data) =>
      framer.feed(data, (payload) => {
        for (const answer of answers(decode(payload)))
          socket.write(answer instanceof Uint8Array ? answer : frame(encode(answer)));
      }),
    );
  });
  const port = await listening(server);
  return {
    port,
    close: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
