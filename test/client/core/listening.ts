import { discoverServerAddress } from '../../../client/core/address.ts';
import type { ChatEvent } from '../../../client/core/events.ts';
import { LiveClient, type LiveClientOptions } from '../../../client/core/live-client.ts';
import { connectFunctionFor } from '../../../client/node/connect-to.ts';
import { eventually } from '../../support/eventually.ts';

/** A client that records its events. */
export interface Listening {
  readonly client: LiveClient;
  readonly events: ChatEvent[];
  /** The revs of the received changes of a conversation, in the order of their arrival. */
  revs(conversation: number): number[];
  /** Resolves when the client has received this many events of the type. */
  heard(type: ChatEvent['type'], times?: number): Promise<void>;
}

/** Starts a client that reconnects quickly. */
export async function listen(
  url: string,
  options: Partial<Omit<LiveClientOptions, 'connect'>> & { hear?: (event: ChatEvent) => Promise<void> | void } = {},
): Promise<Listening> {
  const events: ChatEvent[] = [];
  const { hear, ...rest } = options;
  const client = new LiveClient({
    connect: connectFunctionFor(await discoverServerAddress(url)),
    token: 'kls_not-a-real-one',
    follow: { resumeRevByConversation: new Map(), startWithoutResumeRev: 'now', onlyConversations: null },
    backoff: { unjitteredFirstDelayMs: 10, maxDelayMs: 100 },
    ...rest,
    listener: (event) => {
      events.push(event);
      return hear?.(event);
    },
  });
  client.start();
  const count = (type: ChatEvent['type']): number => events.filter((event) => event.type === type).length;
  return {
    client,
    events,
    revs: (id) =>
      events.flatMap((each) => (each.type === 'change' && each.conversation === id ? [each.change.rev] : [])),
    heard: async (type, times = 1) => {
      await eventually(
        async () => count(type),
        (heard) => heard >= times,
      );
    },
  };
}
