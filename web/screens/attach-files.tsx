import { useSignal } from '@preact/signals';
import { useCallback, useEffect, useRef } from 'preact/hooks';
import { formatBytes } from '../../client/core/format-bytes.ts';
import { sanitize } from '../../client/core/safe-text.ts';
import type { AttachedFile } from '../core/uploads/attachments.ts';
import type { ChatState } from '../core/chat-state.ts';
import { words } from '../words/words.ts';

interface AttachingOptions {
  readonly chat: ChatState;
  readonly conversation: number;
  readonly field: { readonly current: HTMLTextAreaElement | null };
  readonly problem: { value: string | null };
  /** Whether the person edits a message. No files are attached then, because an edit changes only the text. */
  readonly isEditing: boolean;
}

/** Attaches chosen, dropped and pasted files to the draft. */
export function useAttaching({ chat, conversation, field, problem, isEditing }: AttachingOptions) {
  const attach = useCallback(
    (chosen: File[]): void => {
      field.current?.focus({ preventScroll: true });
      void chat.attachments.add(conversation, chosen).then((maxFiles) => {
        problem.value = maxFiles === null ? null : words.tooManyFiles(maxFiles);
      });
    },
    [chat, conversation],
  );
  const onPaste = (event: ClipboardEvent): void => {
    const pasted = event.clipboardData;
    // Pastes text as text: office programs copy a picture of the text together with the text.
    if (isEditing || pasted === null || pasted.files.length === 0 || pasted.types.includes('text/plain')) return;
    event.preventDefault();
    attach([...pasted.files]);
  };
  return { attach, onPaste };
}

/** Opens the browser's file dialog. */
export function AttachButton({ onFiles }: { readonly onFiles: (files: File[]) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        onChange={({ currentTarget }) => {
          onFiles([...(currentTarget.files ?? [])]);
          // Resets the field, so that the same file can be chosen again.
          currentTarget.value = '';
        }}
      />
      <button
        class="attach"
        type="button"
        aria-label={words.attachFiles}
        title={words.attachFiles}
        onClick={() => input.current?.click()}
      >
        <svg viewBox="0 0 24 24" width="20" height="20" aria-hidden="true">
          <path
            d="M20 11.5 12.2 19a4.6 4.6 0 0 1-6.5-6.5l8-7.7a3 3 0 0 1 4.3 4.3l-8 7.7a1.5 1.5 0 0 1-2.1-2.1l7.2-7"
            fill="none"
            stroke="currentColor"
            stroke-width="1.8"
            stroke-linecap="round"
            stroke-linejoin="round"
          />
        </svg>
      </button>
    </>
  );
}

interface AttachedFilesProps {
  readonly chat: ChatState;
  readonly files: readonly AttachedFile[];
  /** Called after the removal of a file: its button, which had the focus, no longer exists. */
  readonly onRemoved: () => void;
}

/** The files that are attached to the draft, each with its progress. */
export function AttachedFiles({ chat, files, onRemoved }: AttachedFilesProps) {
  if (files.length === 0) return null;
  return (
    <ul class="attached">
      {files.map((each) => (
        <Attached key={each.key} chat={chat} attached={each} onRemoved={onRemoved} />
      ))}
    </ul>
  );
}

type AttachedProps = Pick<AttachedFilesProps, 'chat' | 'onRemoved'> & { readonly attached: AttachedFile };

function Attached({ chat, attached, onRemoved }: AttachedProps) {
  const { key, file, sentBytes, stored, problem } = attached;
  const name = sanitize(file.name);
  return (
    <li>
      <span class="attached-name" dir="auto">
        {name}
      </span>
      <span class="quiet">{formatBytes(file.size)}</span>
      <button
        class="link"
        type="button"
        aria-label={words.removeFile(name)}
        onClick={() => {
          chat.attachments.remove(key);
          onRemoved();
        }}
      >
        ✕
      </button>
      {stored === null && problem === null ? (
        <progress value={sentBytes} max={Math.max(1, file.size)} aria-label={words.uploading(name)} />
      ) : null}
      {problem === null ? null : (
        <p class="error" role="alert">
          {problem}.{' '}
          <button class="link" type="button" onClick={() => chat.attachments.retryUpload(key)}>
            {words.tryAgain}
          </button>
        </p>
      )}
    </li>
  );
}

/** Takes files that are dropped anywhere on the page. Otherwise the browser would leave the page and open them. */
export function DropTarget({ title, onFiles }: { readonly title: string; readonly onFiles: (files: File[]) => void }) {
  const isDragOver = useSignal(false);
  useEffect(() => {
    const carriesFiles = ({ dataTransfer }: DragEvent): boolean => dataTransfer?.types.includes('Files') === true;
    const onOver = (event: DragEvent): void => {
      if (!carriesFiles(event)) return;
      event.preventDefault();
      isDragOver.value = true;
    };
    // The browser sends a `dragleave` event for each element that the pointer leaves. Only an event without
    // `relatedTarget` means that the pointer left the window.
    const onLeave = ({ relatedTarget }: DragEvent): void => {
      if (relatedTarget === null) isDragOver.value = false;
    };
    const onDrop = (event: DragEvent): void => {
      if (!carriesFiles(event)) return;
      event.preventDefault();
      isDragOver.value = false;
      onFiles([...event.dataTransfer!.files]);
    };
    addEventListener('dragover', onOver);
    addEventListener('dragleave', onLeave);
    addEventListener('drop', onDrop);
    return () => {
      removeEventListener('dragover', onOver);
      removeEventListener('dragleave', onLeave);
      removeEventListener('drop', onDrop);
    };
  }, [onFiles]);
  if (!isDragOver.value) return null;
  return <div class="drop-here">{words.dropHere(title)}</div>;
}
