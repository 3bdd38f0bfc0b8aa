import { ConnectionError } from '../../client/core/chat-error.ts';
import type { ConnectFunction, Connection } from '../../client/core/connection.ts';

const CLOSE_TIMEOUT_MS = 1_000;

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
      connectCancellation?.addEventListener('abort', () => fail('it was given up'), { once: true });
      socket.addEventListener('open', () => {
        clearTimeout(timer);
        wasOpen = true;
        resolve(connectionOf(socket, end));
      });
      socket.addEventListener('message', ({ data }) => onText(String(data)));
      socket.addEventListener('close', ({ code, reason }) => {
        clearTimeout(timer);
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
