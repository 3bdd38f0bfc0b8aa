/** A file that a message carries, as its readers see it. */
export interface Attachment {
  /** Id of the file: 22 characters of base64url. */
  readonly id: string;
  readonly name: string;
  readonly type: string;
  /** Bytes. */
  readonly size: number;
  /** Pixels of a picture as it is shown, if the file says them. */
  readonly width?: number | undefined;
  readonly height?: number | undefined;
}
