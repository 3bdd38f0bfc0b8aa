import { ConnectionError } from '../../client/core/chat-error.ts';
import type { ConnectFunction, Connection } from '../../client/core/connection.ts';

const CLOSE_TIMEOUT_MS = 1_000;

/** Why the page is not connected, so that no new messages arrive. */
export interface ConnectionProblem {
  readonly reason: string;
  /** Time of the next attempt to connect, as `Date.now` counts; null: an attempt is running. */
  readonly retryAt: number | null;
}

/**
 * Connects a page to the live interface below the path of `base`. Browsers cannot stop reading, so a pause has no
 * effect.
 */
export function webSocketConnect(base: URL): ConnectFunction {
  const url = new URL('v1/live', base);
  url.protocol = base.protocol === 'https:' ? 'wss:' : 'ws:';
  return ({ onText, onEnd }, { connectTimeoutMs, connectCancellation }) =>
    new Promise<Connection>((resolve, reject) => {
      const socket = new WebSocket(url);
      let wasOpen = false;
      let hasEnded = false;
      const end = (code: number | null, reason: string): void => {
        if (hasEnded) return;
        hasEnded = true;
        onEnd({ code, reason });
      };
      const fail = (sentence: string): void => {
        socket.close();
        reject(new ConnectionError(sentence));
      };
      const timer = setTimeout(() => fail('the server did not answer in time'), connectTimeoutMs);
      // The signal outlives this connection: without `settled` it would keep a listener for each attempt to connect.
      const settled = new AbortController();
      connectCancellation?.addEventListener('abort', () => fail('it was given up'), { signal: settled.signal });
      const settle = (): void => {
        clearTimeout(timer);
        settled.abort();
      };
      socket.addEventListener('open', () => {
        settle();
        wasOpen = true;
        resolve(connectionOf(socket, end));
      });
      socket.addEventListener('message', ({ data }) => onText(String(data)));
      socket.addEventListener('close', ({ code, reason }) => {
        settle();
        if (wasOpen) end(code, reason === '' ? 'the connection broke' : reason);
        else reject(new ConnectionError('there is no live connection to the server'));
      });
    });
}

function connectionOf(socket: WebSocket, end: (code: number | null, reason: string) => void): Connection {
  return {
    send: (text) => {
      if (socket.readyState === WebSocket.OPEN) socket.send(text);
    },
    get unsentBytes() {
      return socket.bufferedAmount;
    },
    pause: () => {},
    resume: () => {},
    close: () => {
      socket.close();
      setTimeout(() => end(null, 'the server did not close the connection'), CLOSE_TIMEOUT_MS);
    },
    destroy: (reason) => {
      socket.close();
      end(null, reason);
    },
  };
}
