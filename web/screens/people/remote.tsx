import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { ChatState } from '../../core/chat-state.ts';
import { words } from '../../words/words.ts';
import { Problem } from '../modal.tsx';

/** A value that a part of a dialog reads from the server. */
export interface Remote<Value> {
  /** Null: not read yet. */
  readonly value: Value | null;
  /** Why the last read failed; null: it succeeded. */
  readonly problem: string | null;
  readonly isReading: boolean;
  /** Reads the value again and replaces it. Never rejects. */
  readonly read: () => Promise<void>;
  /** Replaces the value with the result of `next`, for instance after fetching the next page. Never rejects. */
  readonly extend: (next: (value: Value) => Promise<Value>) => Promise<void>;
}

interface RemoteOptions {
  readonly chat: ChatState;
  /** The value is read again when this key changes; the former value stays until the answer. */
  readonly key: unknown;
}

/** Reads the value on the first draw, and after a failure again when the connection is back. */
export function useRemote<Value>(load: () => Promise<Value>, { chat, key }: RemoteOptions): Remote<Value> {
  const value = useSignal<Value | null>(null);
  const problem = useSignal<string | null>(null);
  const isReading = useSignal(false);
  const latest = useRef(0);
  const take = async (work: () => Promise<Value>): Promise<void> => {
    latest.current += 1;
    const own = latest.current;
    // Of two running reads only the later one counts, even if its answer arrives first.
    const isLatest = (): boolean => own === latest.current;
    isReading.value = true;
    try {
      const next = await work();
      if (isLatest()) [value.value, problem.value] = [next, null];
    } catch (error) {
      if (isLatest()) problem.value = (error as Error).message;
    } finally {
      if (isLatest()) isReading.value = false;
    }
  };
  const read = (): Promise<void> => take(load);
  useEffect(() => {
    void read();
    return () => {
      latest.current += 1;
    };
  }, [key]);
  const isConnected = chat.connectionProblem.value === null;
  useEffect(() => {
    if (isConnected && problem.peek() !== null) void read();
  }, [isConnected]);
  return {
    value: value.value,
    problem: problem.value,
    isReading: isReading.value,
    read,
    extend: async (next) => {
      const shown = value.peek();
      if (shown !== null) await take(() => next(shown));
    },
  };
}

interface RemoteStateProps {
  readonly remote: Pick<Remote<unknown>, 'value' | 'problem' | 'read'>;
}

/** Shows that the value is being read, or why the read failed with a button for another attempt. */
export function RemoteState({ remote: { value, problem, read } }: RemoteStateProps) {
  if (problem === null) return value === null ? <p class="quiet">{words.loading}</p> : null;
  return (
    <div class="remote-problem">
      <Problem sentence={problem} />
      <button type="button" onClick={() => void read()}>
        {words.tryAgain}
      </button>
    </div>
  );
}
