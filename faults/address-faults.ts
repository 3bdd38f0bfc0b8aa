import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lacksOpenssl, makeCertificate } from './certificates.ts';
import type { CleanUp } from './clean-up.ts';
import type { Fault, Scene } from './fault.ts';
import { Receiver, take, type Behaviour } from './receiver.ts';
import { endedByItself } from './server-faults.ts';
import { Stage } from './stage.ts';
import type { ShimCommand } from './clock-shim.ts';

const RUNS = { full: 100, quick: 2, test: 2 };
const RUN_MS = 30_000;
/** The number of messages that each healthy hook has to get while the fault strikes the other hooks. */
const BESIDE = 10;
/** A name that no name server knows: `clock-shim.ts` answers the server's look-ups of it. */
const NAME = 'receiver.klatch.test';
const PUBLIC = '127.0.0.1';
/**
 * A second receiver listens on this address, on the port of the receiver that the fault strikes. No connection may
 * reach it.
 */
const TRAP = '127.0.0.2';
/** Forbidden addresses that the name resolves to during a fault: each run uses one of these lists. */
const PRIVATE: readonly (readonly string[])[] = [
  [TRAP],
  ['10.1.2.3'],
  [`::ffff:${TRAP}`],
  ['192.168.1.1', TRAP],
  ['::1'],
  ['169.254.169.254'],
  ['fd00::1', '100.64.0.1'],
];

async function openCertificates(cleanUp: CleanUp): Promise<Scene> {
  const good = await makeCertificate(`IP:${PUBLIC}`);
  const bad = [await makeCertificate(`IP:${PUBLIC}`), await makeCertificate('DNS:somebody-else.test')];
  const folder = await mkdtemp(join(tmpdir(), 'klatch-faults-'));
  await cleanUp.add('folder of certificates', () => rm(folder, { recursive: true, force: true }));
  const trusted = join(folder, 'trusted.pem');
  // The server trusts the good certificate and the bad one for another name (`bad[1]`), but not `bad[0]`.
  await writeFile(trusted, good.cert + bad[1]!.cert);
  const stage = await Stage.start(cleanUp, {
    struck: (recorder) => Receiver.start(recorder, { tls: good }),
    process: { env: { NODE_EXTRA_CA_CERTS: trusted } },
  });
  return {
    stage,
    strike: async (run) => {
      stage.struck.show(bad[run % bad.length]!);
      stage.struck.hangUp();
      await Promise.all([stage.struckFailBy('tls'), stage.healthyGoOn(BESIDE)]);
      stage.struck.show(good);
      stage.faultEnds();
    },
    violations: () => endedByItself(stage),
  };
}

/**
 * Accepts the delivery and closes the connection, so that the server looks the receiver's name up for each delivery.
 */
const takeAndClose: Behaviour = (call) => {
  call.res.shouldKeepAlive = false;
  take(call);
};

async function openAddresses(cleanUp: CleanUp): Promise<Scene> {
  const steer = (stage: Stage, addresses: readonly string[]): Promise<void> => {
    const steering: ShimCommand = { addresses: { [NAME]: addresses } };
    return stage.server.tell(steering);
  };
  const stage = await Stage.start(cleanUp, {
    // Only this address is allowed, not all of loopback: the address of the trap (127.0.0.2) has to stay forbidden.
    settings: `delivery { allow = ["${PUBLIC}"], dns-cache-ttl = 0s, dns-negative-ttl = 0s }`,
    process: { preload: join(import.meta.dirname, 'clock-shim.ts') },
    struckHost: NAME,
    whenStarted: (server) => server.tell({ addresses: { [NAME]: [PUBLIC] } } satisfies ShimCommand),
  });
  stage.struck.behave = takeAndClose;
  const trap = await Receiver.start(stage.recorder, { host: TRAP, port: stage.struck.port });
  await cleanUp.add('trap', () => trap.down());
  return {
    stage,
    strike: async (run) => {
      await steer(stage, PRIVATE[run % PRIVATE.length]!);
      await Promise.all([stage.struckFailBy('address policy'), stage.healthyGoOn(BESIDE)]);
      // If a name has public and private addresses, the server connects only to the public one.
      await steer(stage, run % 2 === 0 ? [PUBLIC] : [TRAP, PUBLIC]);
      stage.faultEnds();
    },
    violations: () => [
      ...endedByItself(stage),
      ...(trap.connections > 0 ? [`${trap.connections} connections went to a private address`] : []),
    ],
    remark: () => `${trap.connections} connections to a private address`,
  };
}

export const addressFaults: readonly Fault[] = [
  {
    name: 'certificate',
    title: 'receiver has a bad certificate',
    runs: RUNS,
    runMs: RUN_MS,
    repeatsPerLane: 0,
    lacks: lacksOpenssl,
    open: openCertificates,
  },
  {
    name: 'address',
    title: 'receiver changes its address to a private one',
    runs: RUNS,
    runMs: RUN_MS,
    repeatsPerLane: 0,
    open: openAddresses,
  },
];
