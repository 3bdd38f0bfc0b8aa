import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { ChatState } from '../core/chat-state.ts';
import { words } from '../words/words.ts';
import { Problem } from './modal.tsx';

/** A value that a part of a dialog reads from the server, and may change there. */
export interface RemoteValue<Value> {
  /** The value; null: it was not read yet. */
  readonly value: Value | null;
  /** Why the last read or change failed; null: it succeeded. */
  readonly problem: string | null;
  /** Whether a read is worth a repetition: the last one failed, or nothing was read yet. */
  readonly canTryAgain: boolean;
  readonly isBusy: boolean;
  /** Reads the value again and replaces it. Never rejects. */
  readonly read: () => Promise<void>;
  /** Replaces the value with the result of `next`, for instance after fetching the next page. Never rejects. */
  readonly extend: (next: (value: Value) => Promise<Value>) => Promise<void>;
  /** Changes something on the server and reads the value again. Resolves to whether the change succeeded. */
  readonly change: (work: () => Promise<unknown>) => Promise<boolean>;
}

interface RemoteOptions {
  readonly chat: ChatState;
  /** The value is read again when this key changes; the former value stays until the answer. By default the chat. */
  readonly key?: unknown;
  /** True: the value is read again on each new connection. False: only on a new connection after a failure. */
  readonly rereadsOnReconnect?: boolean;
  /** While the page is visible, the value is also read again after each such time. Null: it is not. */
  readonly rereadEveryMs?: number | null;
}

/** Reads the value on the first draw, and after a failure again when the connection is back. */
export function useRemote<Value>(load: () => Promise<Value>, options: RemoteOptions): RemoteValue<Value> {
  const value = useSignal<Value | null>(null);
  const problem = useSignal<string | null>(null);
  const hasReadFailed = useSignal(false);
  /** The number of running reads and changes. */
  const runningCount = useSignal(0);
  const latestRequestNumber = useRef(0);
  const takeResultOf = async (work: () => Promise<Value>, { isQuiet = false } = {}): Promise<void> => {
    latestRequestNumber.current += 1;
    const requestNumber = latestRequestNumber.current;
    // Of two running reads only the result of the later one is used, even if its answer arrives first.
    const isLatest = (): boolean => requestNumber === latestRequestNumber.current;
    if (!isQuiet) runningCount.value += 1;
    try {
      const next = await work();
      if (!isLatest()) return;
      value.value = next;
      // A quiet read leaves the reason why a change failed: the person may not have read it yet.
      if (!isQuiet || hasReadFailed.peek()) [problem.value, hasReadFailed.value] = [null, false];
    } catch (error) {
      if (isLatest()) [problem.value, hasReadFailed.value] = [(error as Error).message, true];
    } finally {
      if (!isQuiet) runningCount.value -= 1;
    }
  };
  const read = (): Promise<void> => takeResultOf(load);
  const change = async (work: () => Promise<unknown>): Promise<boolean> => {
    runningCount.value += 1;
    try {
      await work();
    } catch (error) {
      [problem.value, hasReadFailed.value] = [(error as Error).message, false];
      return false;
    } finally {
      runningCount.value -= 1;
    }
    // Reads after the change. A read that began before the change may have the former value, and is ignored.
    await read();
    return true;
  };
  useReads(options, {
    read,
    refresh: async () => {
      // A change or another read is running: its result is as new.
      if (runningCount.peek() === 0) await takeResultOf(load, { isQuiet: true });
    },
    abandon: () => {
      latestRequestNumber.current += 1;
    },
    hasProblem: () => problem.peek() !== null,
  });
  return {
    value: value.value,
    problem: problem.value,
    canTryAgain: hasReadFailed.value || value.value === null,
    isBusy: runningCount.value > 0,
    read,
    extend: async (nextValueOf) => {
      const shown = value.peek();
      if (shown !== null) await takeResultOf(() => nextValueOf(shown));
    },
    change,
  };
}

interface Reads {
  readonly read: () => Promise<void>;
  /** Reads the value again while the buttons stay enabled. Never rejects. */
  readonly refresh: () => Promise<void>;
  /** Ignores the results of running reads. */
  readonly abandon: () => void;
  readonly hasProblem: () => boolean;
}

/** Reads on the first draw, after a change of the key, on a reconnection, and again and again if the options say so. */
function useReads(options: RemoteOptions, { read, refresh, abandon, hasProblem }: Reads): void {
  const { chat, key = chat, rereadsOnReconnect: isReadOnReconnect = false, rereadEveryMs = null } = options;
  useEffect(() => {
    void read();
    return abandon;
  }, [key]);
  useRepeatedRead(rereadEveryMs, key, refresh);
  useReconnection(chat, () => {
    if (isReadOnReconnect || hasProblem()) void read();
  });
}

/** Calls `read`, which never rejects, again and again while the page is visible. */
function useRepeatedRead(everyMs: number | null, key: unknown, read: () => Promise<void>): void {
  const latest = useRef(read);
  latest.current = read;
  useEffect(() => {
    if (everyMs === null) return undefined;
    let isReading = false;
    const timer = setInterval(() => {
      // The next read waits for a slow answer.
      if (document.visibilityState !== 'visible' || isReading) return;
      isReading = true;
      void latest.current().then(() => {
        isReading = false;
      });
    }, everyMs);
    return () => clearInterval(timer);
  }, [everyMs, key]);
}

/** Calls `onReconnected` after each reconnection to the server. */
function useReconnection(chat: ChatState, onReconnected: () => void): void {
  const isConnected = chat.connectionProblem.value === null;
  const isFirstDraw = useRef(true);
  useEffect(() => {
    const isReconnected = isConnected && !isFirstDraw.current;
    isFirstDraw.current = false;
    if (isReconnected) onReconnected();
  }, [isConnected]);
}

export interface RemoteStateProps {
  readonly remote: Pick<RemoteValue<unknown>, 'value' | 'problem' | 'canTryAgain' | 'isBusy' | 'read'>;
  /** The text for an empty list. */
  readonly emptyText?: string;
}

/** Shows that the value is being read, that the list is empty, or why the last read or change failed. */
export function RemoteState({ remote, emptyText: empty }: RemoteStateProps) {
  const { value, problem, canTryAgain, isBusy, read } = remote;
  if (problem !== null)
    return (
      <div class="remote-problem">
        <Problem sentence={problem} />
        {canTryAgain ? (
          <button type="button" disabled={isBusy} onClick={() => void read()}>
            {words.tryAgain}
          </button>
        ) : null}
      </div>
    );
  if (value === null)
    return (
      <p class="quiet" aria-busy="true">
        {words.loading}
      </p>
    );
  return empty !== undefined && Array.isArray(value) && value.length === 0 ? <p class="quiet">{empty}</p> : null;
}
