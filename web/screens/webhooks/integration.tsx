import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { sanitize } from '../../../client/core/safe-text.ts';
import {
  IntegrationApi,
  postTestMessage,
  type IntegrationState,
  type ProgramAddress,
  type RefusedPosts,
} from '../../core/webhooks/integration-api.ts';
import { useAttempt } from '../attempt.ts';
import { ConfirmButton } from '../confirm-button.tsx';
import { CopyButton } from '../copy-button.tsx';
import { Problem } from '../modal.tsx';
import { RemoteState, useRemote } from '../remote.tsx';
import { shortMomentOf } from '../../words/dates.ts';
import { integrationWords } from '../../words/integration-words.ts';
import { Choice } from './hook-form.tsx';
import type { WebhookPartProps } from './part-props.ts';

/** The time after which the use of the address is read again. */
const REREAD_MS = 10_000;
const COVER = '•'.repeat(12);

/** The addresses at which programs post into the group, a test message, the last use, and refused posts. */
export function Integration({ chat, entry }: WebhookPartProps) {
  const group = entry.info.id;
  const api = useMemo(() => new IntegrationApi(chat.api, group), [chat, group]);
  const remote = useRemote(() => api.read(), { chat, key: group, rereadsOnReconnect: true, rereadEveryMs: REREAD_MS });
  const { value } = remote;
  return (
    <>
      <h3>{integrationWords.title}</h3>
      <RemoteState remote={remote} />
      {value === null ? null : (
        <>
          <Addresses integration={value} />
          <TestMessage webhook={value.webhook} onPosted={() => void remote.read()} />
          <Use integration={value} />
          <Refused refused={value.refused} />
          <section>
            <h4>{integrationWords.rotate}</h4>
            <ConfirmButton
              label={integrationWords.rotate}
              question={integrationWords.rotateQuestion(value.postsOfLastDay)}
              isBusy={remote.isBusy}
              onConfirm={() => void remote.change(() => api.rotateToken())}
            />
          </section>
        </>
      )}
    </>
  );
}

/** The values to paste into a program. They are covered first, since they are as secret as a password. */
function Addresses({ integration: { webhook, addresses } }: { readonly integration: IntegrationState }) {
  const chosen = useSignal('');
  const isRevealed = useSignal(false);
  const names = Object.fromEntries([
    ['', integrationWords.anyProgram],
    ...addresses.map((address) => [address.name, nameOf(address)]),
  ]) as Record<string, string>;
  const address = addresses.find(({ name }) => name === chosen.value);
  const values = address?.values ?? [{ name: 'curl', value: `curl -d 'hello' ${webhook}` }];
  const token = webhook.slice(webhook.lastIndexOf('/') + 1);
  return (
    <section>
      <p class="quiet">{integrationWords.secret}</p>
      <Choice label={integrationWords.program} value={chosen} choices={names} />
      <ul class="address-values">
        {values.map(({ name, value }) => (
          <AddressValue
            key={`${chosen.value} ${name}`}
            name={name}
            value={value}
            shown={isRevealed.value ? value : value.replaceAll(token, COVER)}
          />
        ))}
      </ul>
      <button
        type="button"
        onClick={() => {
          isRevealed.value = !isRevealed.value;
        }}
      >
        {isRevealed.value ? integrationWords.cover : integrationWords.reveal}
      </button>
    </section>
  );
}

function nameOf({ name, programs }: ProgramAddress): string {
  return programs.length === 0 || programs.join() === name ? name : `${name}: ${programs.join(', ')}`;
}

interface AddressValueProps {
  readonly name: string;
  readonly value: string;
  /** The value as it is shown, in which the token may be covered. */
  readonly shown: string;
}

function AddressValue({ name, value, shown }: AddressValueProps) {
  return (
    <li>
      <span class="quiet">{name}</span>
      <code>{shown}</code>
      <CopyButton text={value} label={name} />
    </li>
  );
}

interface TestMessageProps {
  readonly webhook: string;
  readonly onPosted: () => void;
}

function TestMessage({ webhook, onPosted }: TestMessageProps) {
  const { problem, isBusy, run } = useAttempt();
  const result = useSignal('');
  const post = (): void => {
    result.value = '';
    void run(async () => {
      const { isAccepted, status } = await postTestMessage(webhook, integrationWords.testText);
      result.value = isAccepted ? integrationWords.testAccepted : integrationWords.testRefused(status);
      onPosted();
    });
  };
  return (
    <section>
      <button type="button" disabled={isBusy} onClick={post}>
        {integrationWords.test}
      </button>
      <p role="status">{result}</p>
      <Problem sentence={problem} />
    </section>
  );
}

function Use({ integration: { lastPostAt, postsOfLastDay } }: { readonly integration: IntegrationState }) {
  return (
    <section>
      <h4>{integrationWords.use}</h4>
      <p>
        {lastPostAt === null
          ? integrationWords.neverUsed
          : integrationWords.lastUsed(shortMomentOf(lastPostAt), postsOfLastDay)}
      </p>
    </section>
  );
}

function Refused({ refused }: { readonly refused: readonly RefusedPosts[] }) {
  return (
    <section>
      <h4>{integrationWords.refused}</h4>
      {refused.length === 0 ? <p class="quiet">{integrationWords.noneRefused}</p> : null}
      <ul class="refused-posts">
        {refused.map((each) => (
          <li key={`${each.code} ${each.user_agent} ${each.first_at}`}>
            <p dir="auto">{sanitize(each.sentence)}</p>
            <p class="quiet">
              {integrationWords.refusedBy(
                each.posts,
                each.user_agent === null ? null : sanitize(each.user_agent),
                each.format === null ? null : sanitize(each.format),
                shortMomentOf(each.last_at),
              )}
            </p>
          </li>
        ))}
      </ul>
    </section>
  );
}
