import { useSignal } from '@preact/signals';
import { formatBytes } from '../../client/core/format-bytes.ts';
import { sanitize } from '../../client/core/safe-text.ts';
import type { Attachment } from '../../client/core/shapes.ts';
import { words } from '../words/words.ts';
import { hasModifier } from './feed-keys.ts';
import { addressOfFile, isPicture, type PictureFile } from './pictures.ts';

const MAX_PICTURE_WIDTH_PX = 400;
const MAX_PICTURE_HEIGHT_PX = 320;
const MIN_PICTURE_SIDE_PX = 24;

interface MessageFilesProps {
  readonly files: readonly Attachment[];
  /** The path of `/v1/files/`, which begins with the path of the base. */
  readonly filesBase: string;
  readonly onOpen: (picture: PictureFile) => void;
}

/** The files of a message: small pictures of known dimensions as pictures, other files as cards. */
export function MessageFiles({ files, filesBase, onOpen }: MessageFilesProps) {
  return (
    <>
      {files.map((file) => {
        const href = addressOfFile(filesBase, file);
        return isPicture(file) ? (
          <Picture key={file.id} file={file} href={href} onOpen={onOpen} />
        ) : (
          <FileCard key={file.id} file={file} href={href} />
        );
      })}
    </>
  );
}

interface FileProps<File> {
  readonly file: File;
  readonly href: string;
}

/** A picture. Its space is reserved before it is loaded, so that nothing moves. */
function Picture({ file, href, onOpen }: FileProps<PictureFile> & Pick<MessageFilesProps, 'onOpen'>) {
  const isBroken = useSignal(false);
  if (isBroken.value) return <FileCard file={file} href={href} />;
  const name = sanitize(file.name);
  const scale = Math.min(1, MAX_PICTURE_WIDTH_PX / file.width, MAX_PICTURE_HEIGHT_PX / file.height);
  return (
    <div class="picture">
      <a
        href={href}
        target="_blank"
        rel="noopener"
        aria-label={words.openPicture(name)}
        onClick={(event) => {
          // With a modifier key the link opens in another tab.
          if (hasModifier(event)) return;
          event.preventDefault();
          onOpen(file);
        }}
      >
        <img
          src={href}
          alt=""
          loading="lazy"
          decoding="async"
          width={Math.max(MIN_PICTURE_SIDE_PX, Math.round(file.width * scale))}
          height={Math.max(MIN_PICTURE_SIDE_PX, Math.round(file.height * scale))}
          onError={() => {
            isBroken.value = true;
          }}
        />
      </a>
      <a class="picture-name" href={href} download={name}>
        <span dir="auto">{name}</span> <span>{formatBytes(file.size)}</span>
      </a>
    </div>
  );
}

function FileCard({ file, href }: FileProps<Attachment>) {
  const name = sanitize(file.name);
  return (
    <a class="file" href={href} download={name}>
      <span class="file-kind" aria-hidden="true">
        {extensionLabelOf(name)}
      </span>
      <span class="file-name" dir="auto">
        {name}
      </span>
      <span class="quiet">
        {formatBytes(file.size)} · {words.download}
      </span>
    </a>
  );
}

/** The extension of a file name in capitals; "…" if there is none of 1 to 4 characters. */
function extensionLabelOf(name: string): string {
  return /\.([a-z0-9]{1,4})$/i.exec(name)?.[1]!.toUpperCase() ?? '…';
}
