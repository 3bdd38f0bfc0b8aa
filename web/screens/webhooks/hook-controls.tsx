import { useSignal } from '@preact/signals';
import type { Hook, HookOptions } from '../../core/webhooks/hook-api.ts';
import { useAttempt } from '../attempt.ts';
import { ConfirmButton } from '../confirm-button.tsx';
import { Problem } from '../modal.tsx';
import { hookWords } from '../../words/hook-words.ts';
import { HookForm } from './hook-form.tsx';
import type { HookPageProps } from './part-props.ts';
import { RedeliverForm } from './redeliver-form.tsx';

interface HookControlsProps {
  readonly part: HookPageProps;
  readonly hook: Hook;
  /** Reads the hook again after a change. */
  readonly onChange: () => Promise<void>;
  /** Shows a new secret, which the server does not show again. */
  readonly onSecret: (secret: string) => void;
}

/** The controls of a hook. Those that change deliveries say their consequence before they act. */
export function HookControls(props: HookControlsProps) {
  const { part, hook, onChange } = props;
  const { problem, isBusy, run } = useAttempt();
  const result = useSignal<string | null>(null);
  const isChanging = useSignal(false);
  /** Runs an action, shows its result as a sentence, and reads the hook again. */
  const act = (work: () => Promise<string | null>): void => {
    result.value = null;
    void run(async () => {
      result.value = await work();
      await onChange();
    });
  };
  const openForm = (): void => {
    isChanging.value = true;
  };
  return (
    <section aria-label={hookWords.hookNumber(hook.id)}>
      <Problem sentence={problem} />
      <p role="status">{result.value ?? ''}</p>
      <p class="quiet" id="ping-hint">
        {hookWords.pingHint}
      </p>
      <div class="panel-buttons">
        {hook.removed === null ? (
          <LiveControls {...props} isBusy={isBusy} act={act} onEdit={openForm} />
        ) : (
          <RestoreControl {...props} isBusy={isBusy} act={act} />
        )}
      </div>
      {isChanging.value ? (
        <HookForm
          url={null}
          isForeign={hook.format !== 'klatch'}
          options={optionsOf(hook)}
          label={hookWords.change}
          isBusy={isBusy}
          onSubmit={async (_url, options) => {
            const isDone = await run(() => part.api.change(hook.id, options));
            if (!isDone) return;
            isChanging.value = false;
            await onChange();
          }}
          onCancel={() => {
            isChanging.value = false;
          }}
        />
      ) : null}
      {hook.removed === null ? <RedeliverForm part={part} isBusy={isBusy} act={act} /> : null}
    </section>
  );
}

function optionsOf({ description, order, batch, signature, events, skip }: Hook): HookOptions {
  return { description, order, batch, signature, events, skip };
}

interface ActionProps {
  readonly isBusy: boolean;
  readonly act: (work: () => Promise<string | null>) => void;
}

function LiveControls(props: HookControlsProps & ActionProps & { readonly onEdit: () => void }) {
  const { part, hook, isBusy, act, onSecret, onEdit } = props;
  const { api, state } = part;
  const { id, pending } = hook;
  const silently = (work: () => Promise<void>) => (): void =>
    act(async () => {
      await work();
      return null;
    });
  return (
    <>
      <PauseControls {...props} />
      <button
        type="button"
        aria-describedby="ping-hint"
        disabled={isBusy}
        onClick={() => act(async () => hookWords.pinged(await api.ping(id)))}
      >
        {hookWords.ping}
      </button>
      {pending === 0 ? null : (
        <ConfirmButton
          label={hookWords.discard}
          question={hookWords.discardQuestion(pending)}
          isBusy={isBusy}
          onConfirm={() => act(async () => hookWords.discarded(await api.discardBacklog(id)))}
        />
      )}
      <ConfirmButton
        label={hookWords.rotate}
        question={hookWords.rotateQuestion}
        isBusy={isBusy}
        onConfirm={silently(async () => onSecret(await api.rotateSecret(id)))}
      />
      <button type="button" disabled={isBusy} onClick={onEdit}>
        {hookWords.change}
      </button>
      <ConfirmButton
        label={hookWords.remove}
        question={hookWords.removeQuestion(pending)}
        isBusy={isBusy}
        onConfirm={silently(async () => {
          await api.remove(id);
          // The answer may take seconds. By then the person may look at something else.
          const { value: route } = state.route;
          if (route.screen === 'conversation' && route.hook === id)
            state.navigation.goToPanelList(part.routeTo('hooks'));
        })}
      />
    </>
  );
}

/** The buttons that pause and resume the hook; a failing hook is tried at once when it is resumed. */
function PauseControls({ part, hook, isBusy, act }: HookControlsProps & ActionProps) {
  const setPaused = (isPaused: boolean): void =>
    act(async () => {
      await part.api.setPaused(hook.id, isPaused);
      return null;
    });
  return (
    <>
      {hook.state === 'active' ? null : (
        <ConfirmButton
          label={hookWords.resume}
          question={hookWords.resumeQuestion(hook.pending)}
          isBusy={isBusy}
          onConfirm={() => setPaused(false)}
        />
      )}
      {hook.state === 'paused' ? null : (
        <ConfirmButton
          label={hookWords.pause}
          question={hookWords.pauseQuestion}
          isBusy={isBusy}
          onConfirm={() => setPaused(true)}
        />
      )}
    </>
  );
}

function RestoreControl({ part, hook, isBusy, act }: HookControlsProps & ActionProps) {
  if ((hook.removed?.restorable_until ?? null) === null) return null;
  return (
    <ConfirmButton
      label={hookWords.restore}
      question={hookWords.restoreQuestion}
      isBusy={isBusy}
      onConfirm={() =>
        act(async () => {
          await part.api.restore(hook.id);
          return null;
        })
      }
    />
  );
}
