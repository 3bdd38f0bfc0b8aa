import { useSignal } from '@preact/signals';
import type { HookOptions, ListedHook } from '../../core/webhooks/hook-api.ts';
import { useAttempt } from '../attempt.ts';
import { Problem } from '../modal.tsx';
import { RemoteState, useRemote } from '../remote.tsx';
import { HookSecret } from './hook-secret.tsx';
import { hookWords } from '../../words/hook-words.ts';
import { HookItem } from './hook-item.tsx';
import { HookForm, NEW_HOOK } from './hook-form.tsx';
import type { WebhookPartProps } from './part-props.ts';

/** The time after which the list is read again: figures of a failing hook change with each attempt. */
const REREAD_MS = 5_000;

/** The reverse webhooks of a group, and a form to add one. */
export function HookList(part: WebhookPartProps) {
  const { chat, api, entry } = part;
  const group = entry.info.id;
  const read = async () => ({ hooks: await api.hooksOf(group), removed: await api.removedHooksOf(group) });
  const hooks = useRemote(read, { chat, key: group, rereadsOnReconnect: true, rereadEveryMs: REREAD_MS });
  const created = useSignal<{ id: number; secret: string } | null>(null);
  const restorable = hooks.value?.removed.filter(isRemovedByTarget) ?? [];
  return (
    <section>
      <h3>{hookWords.hooks}</h3>
      <RemoteState remote={hooks} />
      {hooks.value?.hooks.length === 0 ? <p class="quiet">{hookWords.noHooks}</p> : null}
      <HookItems part={part} hooks={hooks.value?.hooks ?? []} />
      {created.value === null ? null : (
        <HookSecret
          hook={created.value.id}
          secret={created.value.secret}
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
          <HookItems part={part} hooks={restorable} />
        </>
      )}
    </section>
  );
}

function HookItems({ part, hooks }: { readonly part: WebhookPartProps; readonly hooks: readonly ListedHook[] }) {
  const { state, routeTo } = part;
  return (
    <ul class="hook-list">
      {hooks.map((hook) => {
        const route = routeTo('hooks', hook.id);
        return <HookItem key={hook.id} state={state} hook={hook} route={route} onOpen={() => state.go(route)} />;
      })}
    </ul>
  );
}

/** Only such a hook can be restored. */
function isRemovedByTarget({ removed }: ListedHook): boolean {
  return removed?.by === 'target';
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
