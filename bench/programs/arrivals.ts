/**
 * Receivers that record when messages arrive. Argument: a list of `address=kind`. All of them listen on one port, which
 * the program prints as its first line. For `take` it answers with the records since the last answer.
 */
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { Arrivals } from '../support/arrivals-log.ts';
import { machineMs, wallMs } from '../support/clock.ts';
import { ANSWER, readRequests } from '../support/requests.ts';

/** The time after which a `slow` receiver answers. */
const SLOW_MS = 2_000;

/** A `parting` receiver closes a connection after this many answers. */
const PARTING_REQUESTS = 20;
const LAST_ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';

/** The kinds of receivers. `healthy` and `parting` ones answer at once, a `hung` one never. */
type ValueType = keyof Arrivals['requests'];

const nothing = (): Record<ValueType, number> => ({ healthy: 0, parting: 0, slow: 0, hung: 0 });
let noted: [id: string, arrivedMs: number, sinceSentMs: number][] = [];
let requests = nothing();

function note(body: string): void {
  const arrivedMs = machineMs();
  const id = /"message":\{"id":"([^"]+)"/.exec(body)![1]!;
  noted.push([id, arrivedMs, wallMs() - Date.parse(/"sent_at":"([^"]+)"/.exec(body)![1]!)]);
}

function serve(socket: Socket, kind: ValueType): void {
  let served = 0;
  readRequests(socket, (body) => {
    requests[kind] += 1;
    served += 1;
    if (kind === 'hung') return;
    if (kind === 'slow') {
      setTimeout(() => socket.write(ANSWER, 'latin1'), SLOW_MS);
      return;
    }
    note(body);
    if (kind === 'parting' && served === PARTING_REQUESTS) socket.end(LAST_ANSWER, 'latin1');
    else socket.write(ANSWER, 'latin1');
  });
}

function listen(address: string, kind: ValueType, port: number): Promise<Server> {
  const { promise, resolve, reject } = Promise.withResolvers<Server>();
  const server = createServer((socket) => serve(socket, kind));
  server.once('error', reject);
  server.listen(port, address, () => resolve(server));
  return promise;
}

createInterface({ input: process.stdin }).on('line', () => {
  console.log(JSON.stringify({ noted, requests }));
  noted = [];
  requests = nothing();
});
process.on('SIGTERM', () => process.exit(0));
let port = 0;
for (const each of process.argv[2]!.split(',')) {
  const [address, kind] = each.split('=');
  const server = await listen(address!, kind as ValueType, port);
  port = (server.address() as AddressInfo).port;
}
console.log(port);
