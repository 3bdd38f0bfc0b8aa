import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { ChatState } from '../core/chat-state.ts';
import { words } from '../words/words.ts';

/**
 * Shows why the page is not connected, or why the person's last action failed. Without a connection, messages stay
 * readable, and new ones wait to be sent.
 */
export function ConnectionBar({ chat }: { readonly chat: ChatState }) {
  const problem = chat.connectionProblem.value;
  const failure = chat.actionProblem.value;
  const seconds = useSecondsUntil(problem?.retryAt ?? null);
  return (
    <div class="bars" role="status">
      {problem === null ? null : (
        <p class="bar-problem">
          {words.offline(problem.reason)} {words.retryIn(seconds)}{' '}
          <button class="link" type="button" onClick={() => chat.live.reconnectNow()}>
            {words.tryNow}
          </button>
        </p>
      )}
      {failure === null ? null : (
        <p class="bar-problem">
          {failure}{' '}
          <button
            class="link"
            type="button"
            onClick={() => {
              chat.actionProblem.value = null;
            }}
          >
            {words.dismiss}
          </button>
        </p>
      )}
    </div>
  );
}

/** The whole seconds until `at`, a time as `Date.now` counts; 0 if `at` is null. Counts down each second. */
export function useSecondsUntil(at: number | null): number {
  const now = useSignal(Date.now());
  useEffect(() => {
    now.value = Date.now();
    if (at === null) return undefined;
    const timer = setInterval(() => {
      now.value = Date.now();
    }, 1_000);
    return () => clearInterval(timer);
  }, [at]);
  return at === null ? 0 : Math.ceil((at - now.value) / 1_000);
}
