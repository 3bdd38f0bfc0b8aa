import { useSignal } from '@preact/signals';
import { sanitize } from '../../../client/core/safe-text.ts';
import type { ExampleRequest } from '../../core/webhooks/hook-api.ts';
import { hookWords } from '../../words/hook-words.ts';
import { useAttempt } from '../attempt.ts';
import { Problem } from '../modal.tsx';
import type { HookPageProps } from './part-props.ts';

/** The signed request that the receiver gets for an invented message. Nothing is sent. */
export function ExampleOfRequest({ part }: { readonly part: HookPageProps }) {
  const { problem, isBusy, run } = useAttempt();
  const request = useSignal<ExampleRequest | null>(null);
  const show = (): void =>
    void run(async () => {
      request.value = await part.api.example(part.hook);
    });
  return (
    <section class="verify-code">
      <h4>{hookWords.example}</h4>
      <p class="quiet">{hookWords.exampleIs}</p>
      <button type="button" disabled={isBusy} onClick={show}>
        {hookWords.showExample}
      </button>
      <Problem sentence={problem} />
      {request.value === null ? null : (
        <pre>
          <code>
            {textOf(request.value)
              .split('\n')
              .map((line) => sanitize(line))
              .join('\n')}
          </code>
        </pre>
      )}
    </section>
  );
}

/** The request as HTTP/1.1 would send it. The body is unchanged, since the signature covers each of its bytes. */
function textOf({ method, url, headers, body }: ExampleRequest): string {
  const { host, pathname, search } = new URL(url);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return [`${method} ${pathname}${search} HTTP/1.1`, `host: ${host}`, ...lines, '', body].join('\n');
}
