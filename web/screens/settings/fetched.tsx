import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { ChatState } from '../../core/chat-state.ts';
import { settingsWords } from '../../words/settings-words.ts';
import { words } from '../../words/words.ts';
import { useAttempt } from '../attempt.ts';
import { Problem } from '../modal.tsx';

/** A value that a part of the settings reads from the server and changes there. */
export interface Fetched<Value> {
  /** Null: it was not read yet. */
  readonly value: Value | null;
  /** Why the last read or change failed. */
  readonly problem: string | null;
  readonly isBusy: boolean;
  readonly reload: () => void;
  /** Changes something and reads the value again. Resolves to whether both succeeded. */
  readonly change: (work: () => Promise<unknown>) => Promise<boolean>;
}

/** Reads at once, and again with each new connection. */
export function useFetched<Value>(chat: ChatState, fetch: () => Promise<Value>): Fetched<Value> {
  const { problem, isBusy, run } = useAttempt();
  const value = useSignal<Value | null>(null);
  const read = async (): Promise<void> => {
    value.value = await fetch();
  };
  const isConnected = chat.connectionProblem.value === null;
  useEffect(() => {
    // Makes the first read even without a connection: its failure tells the person why the value is missing.
    if (isConnected || value.peek() === null) void run(read);
  }, [chat, isConnected]);
  return {
    value: value.value,
    problem,
    isBusy,
    reload: () => void run(read),
    change: (work) =>
      run(async () => {
        await work();
        await read();
      }),
  };
}

interface FetchedStateProps<Value> {
  readonly chat: ChatState;
  readonly fetched: Fetched<Value>;
  /** The text for an empty list. */
  readonly empty?: string;
}

/** Says that something is loading, is empty, has failed, or may be out of date. */
export function FetchedState<Value>({ chat, fetched, empty }: FetchedStateProps<Value>) {
  const { value, problem, isBusy, reload } = fetched;
  const isEmpty = Array.isArray(value) && value.length === 0;
  return (
    <>
      {chat.connectionProblem.value === null ? null : (
        <p class="settings-note" role="status">
          {settingsWords.noConnection}
        </p>
      )}
      <Problem sentence={problem} />
      {problem !== null && value === null ? (
        <button type="button" disabled={isBusy} onClick={reload}>
          {words.tryAgain}
        </button>
      ) : null}
      {value === null && problem === null ? (
        <p class="quiet" aria-busy="true">
          {words.loading}
        </p>
      ) : null}
      {isEmpty && empty !== undefined ? <p class="quiet">{empty}</p> : null}
    </>
  );
}
