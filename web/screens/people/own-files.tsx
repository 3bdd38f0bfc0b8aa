import { formatBytes } from '../../../client/core/format-bytes.ts';
import { sanitize } from '../../../client/core/safe-text.ts';
import type { ChatState } from '../../core/chat-state.ts';
import {
  listOwnFiles,
  messagePlaceOf,
  type OwnFile,
  type OwnFiles as OwnFilePage,
} from '../../core/people/own-files-api.ts';
import { briefMomentOf } from '../../words/dates.ts';
import { peopleWords } from '../../words/people-words.ts';
import { words } from '../../words/words.ts';
import { useAttempt } from '../attempt.ts';
import { ConfirmButton } from '../confirm-button.tsx';
import { Problem } from '../modal.tsx';
import { RemoteState, useRemote } from '../remote.tsx';

interface OwnFilesProps {
  readonly chat: ChatState;
  /** The path of `/v1/files/`, which begins with the path of the base. */
  readonly filesBase: string;
  /** Opens the message that contains a file. */
  readonly onOpen: (conversation: number, seq: number) => void;
}

/** The files that the account has uploaded, and how much of its quota they take. */
export function OwnFiles({ chat, filesBase, onOpen }: OwnFilesProps) {
  const { problem, isBusy, run } = useAttempt();
  const remote = useRemote(() => listOwnFiles(chat.api, null), { chat });
  const filePage = remote.value;
  const showMore = (): void =>
    void remote.extend(async ({ files, next, usage }) => {
      if (next === null) return { files, next, usage };
      const page = await listOwnFiles(chat.api, next);
      return { ...page, files: [...files, ...page.files] };
    });
  const remove = (file: OwnFile): void =>
    void run(async () => {
      await chat.api.removeFile(file.id);
      // Keeps the shown pages. Reads only the new total size, which every page contains.
      await remote.extend(async ({ files, next }) => {
        const { usage } = await listOwnFiles(chat.api, null);
        return { files: files.filter(({ id }) => id !== file.id), next, usage };
      });
    });
  return (
    <div class="own-files">
      <RemoteState remote={remote} />
      <Problem sentence={problem} />
      {filePage === null ? null : (
        <>
          <Usage usage={filePage.usage} />
          {filePage.files.length === 0 ? <p class="quiet">{peopleWords.noFiles}</p> : null}
          <ul>
            {filePage.files.map((file) => (
              <FileRow
                key={file.id}
                file={file}
                href={`${filesBase}${encodeURIComponent(file.id)}`}
                isBusy={isBusy}
                onOpen={onOpen}
                onRemove={() => remove(file)}
              />
            ))}
          </ul>
          {filePage.next === null ? null : (
            <button type="button" disabled={remote.isBusy} onClick={showMore}>
              {words.showMore}
            </button>
          )}
        </>
      )}
    </div>
  );
}

function Usage({ usage: { bytes, files, max_bytes: mostBytes } }: Pick<OwnFilePage, 'usage'>) {
  const sentence = peopleWords.usage(formatBytes(bytes), formatBytes(mostBytes), files);
  return (
    <>
      <p>{sentence}</p>
      <progress aria-label={sentence} max={mostBytes} value={bytes} />
      <p class="quiet">{peopleWords.filesOfMessages}</p>
    </>
  );
}

interface FileRowProps {
  readonly file: OwnFile;
  readonly href: string;
  readonly isBusy: boolean;
  readonly onOpen: (conversation: number, seq: number) => void;
  readonly onRemove: () => void;
}

function FileRow({ file, href, isBusy, onOpen, onRemove }: FileRowProps) {
  const { size, received, complete: isComplete, message, created_at: createdAt } = file;
  const name = sanitize(file.name);
  const place = message === null ? null : messagePlaceOf(message);
  const uploadState = isComplete ? null : peopleWords.receivedPart(Math.floor((received / Math.max(1, size)) * 100));
  const details = [
    formatBytes(size),
    briefMomentOf(createdAt),
    uploadState,
    message === null ? peopleWords.notSent : null,
  ];
  return (
    <li>
      {isComplete ? (
        <a href={href} download={name} dir="auto">
          {name}
        </a>
      ) : (
        <span dir="auto">{name}</span>
      )}
      <span class="quiet">{details.filter((each) => each !== null).join(' · ')}</span>
      {place === null ? null : (
        <button type="button" onClick={() => onOpen(place.conversation, place.seq)}>
          {peopleWords.showMessage}
        </button>
      )}
      {message === null ? (
        <ConfirmButton
          label={peopleWords.removeFile}
          question={peopleWords.removeFileQuestion(name)}
          isBusy={isBusy}
          onConfirm={onRemove}
        />
      ) : null}
    </li>
  );
}
