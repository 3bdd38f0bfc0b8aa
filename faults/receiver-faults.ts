import type { Fault, Scene } from './fault.ts';
import { refuse, take, type Behaviour } from './receiver.ts';
import { endedByItself } from './server-faults.ts';
import { Stage } from './stage.ts';

const RUNS = { full: 100, quick: 2, test: 1 };
/** The numbers of runs of a fault that has two variants in turn. */
const RUNS_OF_TWO_KINDS = { full: 100, quick: 2, test: 2 };
/**
 * The number of full runs of a fault in which the server waits for two time-outs: each of its runs takes more than 10
 * s.
 */
const LONG_RUNS = 10;
const RUN_MS = 30_000;
/** Messages that each healthy hook has to get while the fault strikes the other hooks. */
const HEALTHY_MESSAGES = 10;
/**
 * A short time-out, since each fault that keeps the server waiting uses it up. It is long enough for a receiver on a
 * machine that stalls.
 */
const SHORT_TIMEOUT = 'delivery.headers-timeout = 6s';

/** A fault that only changes the answers, until each struck hook has got `deliveries` of them. */
function answerFault(
  row: Pick<Fault, 'name' | 'title'>,
  deliveries: number,
  behaviourOf: (run: number, stage: Stage) => Behaviour,
  settings = '',
): Fault {
  const sceneOf = async (stage: Stage): Promise<Scene> => ({
    stage,
    strike: async (run) => {
      stage.struck.behave = behaviourOf(run, stage);
      await Promise.all([stage.struckAreAnswered(deliveries), stage.healthyGoOn(HEALTHY_MESSAGES)]);
      stage.struck.behave = take;
      stage.faultEnds();
    },
  });
  return receiverFault(row, sceneOf, settings);
}

/** A fault of a receiver. No accepted message may arrive twice, and the server must survive. */
export function receiverFault(
  row: Pick<Fault, 'name' | 'title'>,
  sceneOf: (stage: Stage) => Promise<Scene>,
  settings = '',
): Fault {
  return {
    ...row,
    runs: RUNS,
    runMs: RUN_MS,
    repeatsPerLane: 0,
    open: async (cleanUp) => {
      const stage = await Stage.start(cleanUp, { settings });
      const scene = await sceneOf(stage);
      return { ...scene, violations: (all) => [...endedByItself(stage), ...(scene.violations?.(all) ?? [])] };
    },
  };
}

const REDIRECTS = [301, 302, 303, 307, 308];
const RETRY_AFTER_S = 1;
/** A delivery counts as too early only by more than this, since a timer may fire early. */
const EARLY_MS = 20;

/** `ask` answers with Retry-After. Both answers check that no delivery arrived before that time. */
function restful(stage: Stage): { readonly ask: Behaviour; readonly takeAfterRest: Behaviour } {
  const notBefore = new Map<unknown, number>();
  const check: Behaviour = ({ delivery }) => {
    // With `order: none`, messages other than the refused one may come before that time.
    if (delivery.hook.strict && performance.now() < (notBefore.get(delivery.hook) ?? 0)) {
      stage.recorder.violations.add('a delivery came before the time that Retry-After had named');
    }
    notBefore.delete(delivery.hook);
  };
  return {
    ask: (call) => {
      check(call);
      notBefore.set(call.delivery.hook, performance.now() + RETRY_AFTER_S * 1000 - EARLY_MS);
      refuse(429, { 'retry-after': String(RETRY_AFTER_S) })(call);
    },
    takeAfterRest: (call) => {
      check(call);
      take(call);
    },
  };
}

const refuseAtRandom: Behaviour = (call) => (Math.random() < 0.5 ? refuse(500)(call) : take(call));

const sayNothing: Behaviour = ({ delivery }) => {
  delivery.hook.refused += 1;
};

const resetBeforeHead: Behaviour = ({ delivery, socket }) => {
  delivery.hook.refused += 1;
  socket.write('HTTP/1.1 200 O', () => socket.resetAndDestroy());
};

const resetAfterHead: Behaviour = ({ take, socket }) => {
  take();
  // The delay lets the response head arrive before the reset, which discards bytes that the other side has not read.
  socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nhalf', () => {
    setTimeout(() => socket.resetAndDestroy(), 50);
  });
};

const BYTE_MS = 1_000;

function drip(socket: { destroyed: boolean; write: (text: string) => unknown }, text: string): void {
  let sent = 0;
  const timer = setInterval(() => {
    if (socket.destroyed || sent >= text.length) clearInterval(timer);
    else socket.write(text[sent++]!);
  }, BYTE_MS);
}

const slowHead: Behaviour = ({ delivery, socket }) => {
  delivery.hook.refused += 1;
  drip(socket, 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
};

const slowBody: Behaviour = ({ take, socket }) => {
  take();
  socket.write('HTTP/1.1 200 OK\r\ncontent-length: 60\r\n\r\n');
  drip(socket, '.'.repeat(60));
};

/**
 * Uses both behaviours in turn, one for each run. `before` breaks the connection before the status is complete, which
 * counts as a refusal; `after` breaks it later, which counts as an acceptance.
 */
function inTurns(before: Behaviour, after: Behaviour): (run: number) => Behaviour {
  return (run) => (run % 2 === 0 ? before : after);
}

export const receiverFaults: readonly Fault[] = [
  receiverFault({ name: 'down', title: 'receiver down for a while' }, async (stage) => ({
    stage,
    strike: async () => {
      await stage.struck.down();
      await Promise.all([stage.struckFailBy('refused'), stage.healthyGoOn(HEALTHY_MESSAGES)]);
      await stage.struck.up();
      stage.faultEnds();
    },
  })),
  answerFault({ name: 'random-500', title: 'receiver answers 500 at random' }, 10, () => refuseAtRandom),
  receiverFault({ name: 'retry-after', title: 'receiver answers 429 with Retry-After' }, async (stage) => {
    const { ask, takeAfterRest } = restful(stage);
    return {
      stage,
      strike: async () => {
        stage.struck.behave = ask;
        await stage.struckAreAnswered(1);
        stage.struck.behave = takeAfterRest;
        stage.faultEnds();
      },
    };
  }),
  {
    ...answerFault({ name: 'hang', title: 'receiver hangs' }, 2, () => sayNothing, SHORT_TIMEOUT),
    runs: { ...RUNS, full: LONG_RUNS },
  },
  answerFault(
    { name: 'redirect', title: 'receiver redirects' },
    5,
    // A server that followed the redirect would reach a path without a hook, which the recorder reports.
    (run, stage) => refuse(REDIRECTS[run % REDIRECTS.length]!, { location: stage.healthy.url('/elsewhere') }),
  ),
  {
    ...answerFault({ name: 'reset', title: 'receiver resets mid-answer' }, 6, inTurns(resetBeforeHead, resetAfterHead)),
    runs: RUNS_OF_TWO_KINDS,
  },
  {
    ...answerFault(
      { name: 'slow', title: 'receiver answers one byte a second' },
      2,
      inTurns(slowHead, slowBody),
      SHORT_TIMEOUT,
    ),
    runs: { ...RUNS_OF_TWO_KINDS, full: LONG_RUNS },
  },
];
