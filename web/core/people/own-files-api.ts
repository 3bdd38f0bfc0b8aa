import {
  arrayOf,
  boolean,
  integer,
  nullable,
  objectWithAtLeast,
  string,
  type Decoded,
} from '../../../client/core/decode.ts';
import type { OperationCaller } from './operation-caller.ts';

const FILES_OF_PAGE = 50;

const decodeFile = objectWithAtLeast({
  id: string,
  name: string,
  size: integer,
  received: integer,
  complete: boolean,
  message: nullable(string),
  created_at: string,
});
const decodeUsage = objectWithAtLeast({ bytes: integer, files: integer, max_bytes: integer });
const decodeFiles = objectWithAtLeast({ files: arrayOf(decodeFile), next: nullable(string), usage: decodeUsage });

/**
 * A file that the signed-in account has uploaded or is uploading. `message`: the id of the message that contains it.
 */
export type OwnFile = Decoded<typeof decodeFile>;
/**
 * A page of the account's files, with the total size of all files and its limit, in bytes. `next`: the value of
 * `before` for the next page; null: there is none.
 */
export type OwnFiles = Decoded<typeof decodeFiles>;

/** A page of the account's files, newest first. Rejects with ServerError and ConnectionError. */
export function listOwnFiles(api: OperationCaller, before: string | null): Promise<OwnFiles> {
  const input = { limit: FILES_OF_PAGE, ...(before === null ? {} : { before }) };
  return api.call('files.list', input, decodeFiles);
}

/** The conversation and the seq of a message, from its id; null where it has another form. */
export function messagePlaceOf(id: string): { readonly conversation: number; readonly seq: number } | null {
  const found = /^([1-9]\d{0,14}):([1-9]\d{0,14})(?:\.\d+)?$/.exec(id);
  return found === null ? null : { conversation: Number(found[1]), seq: Number(found[2]) };
}
