import type { Attachment, Message } from '../../client/core/shapes.ts';

/** Larger pictures are shown as a card: many of them would fill the memory of the browser. */
const MAX_INLINE_PICTURE_BYTES = 2 * 1024 * 1024;
const PICTURE_TYPES: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);

/** A file that the page shows as a picture within its message; width and height in pixels. */
export type PictureFile = Attachment & { readonly width: number; readonly height: number };

export function isPicture(file: Attachment): file is PictureFile {
  const { type, size, width, height } = file;
  return PICTURE_TYPES.has(type) && size <= MAX_INLINE_PICTURE_BYTES && width !== undefined && height !== undefined;
}

/** The pictures of messages, in the order of the messages. */
export function picturesOf(messages: readonly Message[]): PictureFile[] {
  return messages.flatMap(({ deleted, attachments = [] }) => (deleted === true ? [] : attachments.filter(isPicture)));
}

/** The address of a file. `filesBase`: the path of `/v1/files/`, which begins with the path of the base. */
export function addressOfFile(filesBase: string, { id }: Attachment): string {
  return `${filesBase}${encodeURIComponent(id)}`;
}
