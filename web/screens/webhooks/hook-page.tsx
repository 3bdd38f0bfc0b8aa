import { useSignal } from '@preact/signals';
import { sanitize } from '../../../client/core/safe-text.ts';
import type { Hook } from '../../core/webhooks/hook-api.ts';
import { RemoteState, useRemote } from '../remote.tsx';
import { VerifyCode } from './hook-secret.tsx';
import { SecretOnce } from '../settings/secret-once.tsx';
import { momentOf } from '../../words/dates.ts';
import { hookWords } from '../../words/hook-words.ts';
import { hookSentence } from './hook-sentences.ts';
import { ExampleOfRequest } from './example-request.tsx';
import { HookCharts } from './hook-charts.tsx';
import { HookControls } from './hook-controls.tsx';
import { HookLog } from './hook-log.tsx';
import { HookStateMark } from './hook-state.tsx';
import type { HookPageProps } from './part-props.ts';

/** The time after which the hook is read again: its next attempt may be seconds away. */
const REREAD_MS = 5_000;

/** One reverse webhook: its state in words, its position, its controls, its figures and its delivery log. */
export function HookPage(part: HookPageProps) {
  const { chat, api, hook: id } = part;
  const hook = useRemote(() => api.hook(id), { chat, key: id, rereadsOnReconnect: true, rereadEveryMs: REREAD_MS });
  const secret = useSignal<string | null>(null);
  const { value } = hook;
  return (
    <>
      <RemoteState remote={hook} />
      {value !== null && value.group !== part.entry.info.id ? <p>{hookWords.ofAnotherGroup}</p> : null}
      {value === null || value.group !== part.entry.info.id ? null : (
        <>
          <HookHead hook={value} />
          {secret.value === null ? null : (
            <SecretOnce
              key={secret.value}
              label={hookWords.secretOf(id)}
              usage={hookWords.secretUsage}
              secret={secret.value}
              onDone={() => {
                secret.value = null;
              }}
            />
          )}
          <HookControls
            part={part}
            hook={value}
            onChange={hook.read}
            onSecret={(next) => {
              secret.value = next;
            }}
          />
          <HookCharts part={part} />
          <ExampleOfRequest part={part} />
          {value.format === 'klatch' ? <VerifyCode /> : null}
          <HookLog part={part} onRedelivered={hook.read} />
        </>
      )}
    </>
  );
}

function HookHead({ hook }: { readonly hook: Hook }) {
  const { id, url, description, old_secret_until: oldSecretUntil } = hook;
  return (
    <section>
      <h3>{hookWords.hookNumber(id)}</h3>
      {description === null ? null : <p dir="auto">{sanitize(description)}</p>}
      <p class="quiet hook-url">{sanitize(url)}</p>
      <p class="hook-sentence">
        {/* Only the state is spoken when it changes: the sentence counts the seconds to the next attempt. */}
        <span role="status">
          <HookStateMark state={hook.state} />
        </span>{' '}
        {hookSentence(hook, Date.now())}
      </p>
      <PositionBar hook={hook} />
      {oldSecretUntil === null ? null : <p class="quiet">{hookWords.oldSecretUntil(momentOf(oldSecretUntil))}</p>}
    </section>
  );
}

/** The messages from the hook's start to the newest one, and up to which of them the hook has come. */
function PositionBar({ hook: { start_seq: start, cursor, last_seq: last } }: { readonly hook: Hook }) {
  if (last <= start) return null;
  const sentence = hookWords.positionIs(start, cursor, last);
  return (
    <div class="position">
      <progress max={last - start} value={Math.max(0, cursor - start)} aria-label={hookWords.position} />
      <p class="quiet">{sentence}</p>
    </div>
  );
}
