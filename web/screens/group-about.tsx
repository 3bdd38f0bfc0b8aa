import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { words } from '../words/words.ts';
import { useAttempt } from './attempt.ts';
import { CheckField, LongTextField, TextField } from './fields.tsx';
import { Problem } from './modal.tsx';
import type { PanelPartProps } from './panel-part.ts';

/** The description of the group, and whether it is public. */
export function GroupAbout(part: PanelPartProps) {
  const isEditing = useSignal(false);
  const button = useRef<HTMLButtonElement>(null);
  const wasEditing = useRef(false);
  useEffect(() => {
    if (wasEditing.current && !isEditing.value) button.current?.focus();
    wasEditing.current = isEditing.value;
  }, [isEditing.value]);
  const { about, public: isPublic = false } = part.entry.info;
  const close = (): void => {
    isEditing.value = false;
  };
  if (isEditing.value) return <AboutForm {...part} onClose={close} />;
  return (
    <section>
      <h3>{words.about}</h3>
      {about === null || about === undefined || about === '' ? (
        <p class="quiet">{words.noAbout}</p>
      ) : (
        <p class="about-text" dir="auto">
          {about}
        </p>
      )}
      <p class="quiet">{isPublic ? words.publicGroup : words.closedGroup}</p>
      {part.mayManage ? (
        <button
          ref={button}
          type="button"
          onClick={() => {
            isEditing.value = true;
          }}
        >
          {words.changeAbout}
        </button>
      ) : null}
    </section>
  );
}

function AboutForm({ chat, api, entry, onClose }: PanelPartProps & { readonly onClose: () => void }) {
  const { problem, isBusy, run } = useAttempt();
  const { info } = entry;
  const title = useSignal(info.title);
  const about = useSignal(info.about ?? '');
  const isPublic = useSignal(info.public ?? false);
  const save = (): void =>
    void run(async () => {
      const text = about.value.trim();
      await api.update({ title: title.value, about: text === '' ? null : text, public: isPublic.value });
      await chat.reloadConversations();
    }).then((isDone) => {
      if (isDone) onClose();
    });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
    >
      <h3>{words.about}</h3>
      <Problem sentence={problem} />
      <TextField label={words.groupTitle} text={title} maxLength={200} isRequired takesFocus />
      <LongTextField label={words.groupAbout} text={about} maxLength={2_000} />
      <CheckField label={words.makePublic} checked={isPublic} />
      <div class="panel-buttons">
        <button class="primary" type="submit" disabled={isBusy || title.value.trim() === ''}>
          {words.save}
        </button>
        <button type="button" onClick={onClose}>
          {words.cancel}
        </button>
      </div>
    </form>
  );
}
