// Loaded into a server before its own modules (`node --import`): its wall clock and its look-ups of names then do as
// the words say that its parent sends. The monotonic clock stays as it is, as when somebody sets a machine's clock.
import dnsPromises from 'node:dns/promises';
import { syncBuiltinESMExports } from 'node:module';

/** What the parent may say; what it leaves out stays as it was. */
export interface ShimCommand {
  /** Added to the wall clock, in ms. */
  readonly clockOffsetMs?: number;
  /** Addresses by host name; names that are not listed are looked up as ever. */
  readonly addresses?: Readonly<Record<string, readonly string[]>>;
}

let clockOffsetMs = 0;
let addresses: Readonly<Record<string, readonly string[]>> = {};

const RealDate = Date;
const now = (): number => RealDate.now() + clockOffsetMs;
// A proxy and no subclass: the dates that it makes are dates to everybody.
globalThis.Date = new Proxy(RealDate, {
  construct: (target, args: unknown[], newTarget) =>
    Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget) as object,
  apply: () => new RealDate(now()).toString(),
  get: (target, name) => (name === 'now' ? now : (Reflect.get(target, name) as unknown)),
});

const realLookup = dnsPromises.lookup.bind(dnsPromises) as (host: string, options: object) => Promise<unknown>;
const lookup = async (host: string, options: object): Promise<unknown> => {
  const known = addresses[host];
  if (known === undefined) return realLookup(host, options);
  return known.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
};
Object.assign(dnsPromises, { lookup });
syncBuiltinESMExports();

process.on('message', (word: ShimCommand) => {
  clockOffsetMs = word.clockOffsetMs ?? clockOffsetMs;
  addresses = word.addresses ?? addresses;
  process.send!('heard');
});
// It must not keep a server alive that has stopped.
process.channel?.unref();
