import { ServerError } from '../../../client/core/chat-error.ts';
import type { RetryingRead } from '../../core/persistent-read.ts';
import { words } from '../../words/words.ts';
import { useSecondsUntil } from '../connection-bar.tsx';

/** Shows why a request that the screen depends on fails, and when the page repeats it. */
export function Unavailable({ read }: { readonly read: RetryingRead }) {
  const failure = read.failure.value;
  const seconds = useSecondsUntil(failure?.retryAt ?? null);
  if (failure === null) return <p class="quiet">{words.loading}</p>;
  return (
    <>
      <h2>{titleOf(failure.error)}</h2>
      <p role="status">{failure.error.message}.</p>
      <p>
        {words.retryIn(seconds)}{' '}
        <button type="button" onClick={() => read.tryNow()}>
          {words.tryNow}
        </button>
      </p>
    </>
  );
}

function titleOf(error: Error): string {
  if (error instanceof ServerError) return error.code === 'starting' ? words.starting : words.unavailable;
  return navigator.onLine ? words.unavailable : words.deviceOffline;
}
