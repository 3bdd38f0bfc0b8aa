import { useSignal } from '@preact/signals';
import { sanitize } from '../../../client/core/safe-text.ts';
import type { HookOptions, ListedHook } from '../../core/webhooks/hook-api.ts';
import { useAttempt } from '../attempt.ts';
import { Problem } from '../modal.tsx';
import { RemoteState, useRemote } from '../remote.tsx';
import { RouteLink } from '../route-link.tsx';
import { SecretOnce } from '../settings/secret-once.tsx';
import { briefMomentOf } from '../../words/dates.ts';
import { hookWords } from '../../words/hook-words.ts';
import { lastErrorOf, untilMoment } from './hook-sentences.ts';
import { Sparkline } from './charts.tsx';
import { HookForm, NEW_HOOK } from './hook-form.tsx';
import { HookStateMark } from './hook-state.tsx';
import type { WebhookPartProps } from './part-props.ts';

/** The time after which the list is read again: figures of a failing hook change with each attempt. */
const REREAD_MS = 5_000;

/** The reverse webhooks of a group, and a form to add one. */
export function HookList(part: WebhookPartProps) {
  const { state, chat, api, entry, routeTo } = part;
  const group = entry.info.id;
  const read = async () => ({ hooks: await api.hooksOf(group), removed: await api.removedHooksOf(group) });
  const hooks = useRemote(read, { chat, key: group, rereadsOnReconnect: true, rereadEveryMs: REREAD_MS });
  const created = useSignal<{ id: number; secret: string } | null>(null);
  const open = (hook: number): void => state.go(routeTo('hooks', hook));
  const restorable = hooks.value?.removed.filter(isRemovedByTarget) ?? [];
  return (
    <section>
      <h3>{hookWords.hooks}</h3>
      <RemoteState remote={hooks} />
      {hooks.value?.hooks.length === 0 ? <p class="quiet">{hookWords.noHooks}</p> : null}
      <ul class="hook-list">
        {(hooks.value?.hooks ?? []).map((hook) => (
          <HookItem key={hook.id} part={part} hook={hook} onOpen={() => open(hook.id)} />
        ))}
      </ul>
      {created.value === null ? null : (
        <SecretOnce
          label={hookWords.secretOf(created.value.id)}
          secret={created.value.secret}
          usage={hookWords.secretUsage}
          onDone={() => {
            created.value = null;
          }}
        />
      )}
      <AddHook
        onAdd={async (url, options) => {
          created.value = await api.create(group, url, options);
          void hooks.read();
        }}
      />
      {restorable.length === 0 ? null : (
        <>
          <h4>{hookWords.removedHooks}</h4>
          <ul class="hook-list">
            {restorable.map((hook) => (
              <HookItem key={hook.id} part={part} hook={hook} onOpen={() => open(hook.id)} />
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

/** Only such a hook can be restored. */
function isRemovedByTarget({ removed }: ListedHook): boolean {
  return removed?.by === 'target';
}

interface HookItemProps {
  readonly part: WebhookPartProps;
  readonly hook: ListedHook;
  readonly onOpen: () => void;
}

function HookItem({ part, hook, onOpen }: HookItemProps) {
  const nowMs = Date.now();
  const { id, state, host, description, pending, last_day: lastDay = [] } = hook;
  return (
    <li>
      <div class="hook-head">
        <RouteLink
          state={part.state}
          route={part.routeTo('hooks', id)}
          label={description === null ? sanitize(host) : sanitize(description)}
          onFollow={onOpen}
        />
        <HookStateMark state={state} />
      </div>
      {description === null ? null : <p class="quiet">{sanitize(host)}</p>}
      <Sparkline hours={lastDay} nowMs={nowMs} />
      <dl class="figures">
        <Figure name={hookWords.pending} value={String(pending)} />
        <Figure name={hookWords.oldestPending} value={momentOrNone(hook.oldest_pending_at, hookWords.none)} />
        <Figure name={hookWords.lastDelivery} value={momentOrNone(hook.last_success_at, hookWords.never)} />
        <Figure name={hookWords.lastError} value={lastErrorOf(hook) || hookWords.none} />
        <Figure
          name={hookWords.nextAttempt}
          value={hook.next_attempt_at === null ? hookWords.none : untilMoment(hook.next_attempt_at, nowMs)}
        />
      </dl>
    </li>
  );
}

function momentOrNone(iso: string | null, none: string): string {
  return iso === null ? none : briefMomentOf(iso);
}

function Figure({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

interface AddHookProps {
  readonly onAdd: (url: string, options: HookOptions) => Promise<void>;
}

function AddHook({ onAdd }: AddHookProps) {
  const { problem, isBusy, run } = useAttempt();
  const isOpen = useSignal(false);
  if (!isOpen.value)
    return (
      <button
        type="button"
        onClick={() => {
          isOpen.value = true;
        }}
      >
        {hookWords.add}
      </button>
    );
  return (
    <>
      <h4>{hookWords.add}</h4>
      <Problem sentence={problem} />
      <HookForm
        url=""
        options={NEW_HOOK}
        label={hookWords.add}
        isBusy={isBusy}
        onSubmit={async (url, options) => {
          if (await run(() => onAdd(url, options))) isOpen.value = false;
        }}
        onCancel={() => {
          isOpen.value = false;
        }}
      />
    </>
  );
}
