/** A file that a message carries, as its readers see it. */
export interface Attachment {
  /** The id of the file: 22 characters of base64url. */
  readonly id: string;
  readonly name: string;
  readonly type: string;
  /** In bytes. */
  readonly size: number;
  /** Width and height of a picture as it is shown, in pixels; missing if the file does not contain them. */
  readonly width?: number | undefined;
  readonly height?: number | undefined;
}
