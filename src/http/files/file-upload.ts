import type { Request, Response } from 'express';
import { KlatchError } from '../../errors.ts';
import { requireAccount } from '../../operations/core/caller.ts';
import type { Services } from '../../operations/core/services.ts';
import type { Authenticator } from '../authenticator.ts';
import { announcedBytes, beginUploadBody } from './file-body.ts';
import { authenticateForFiles } from './file-auth.ts';
import { mediaType } from '../json-body.ts';
import { sendJson } from '../responses.ts';

/** Serves `POST /v1/files?name=<name>`: the body is the file. */
export async function uploadFile(
  services: Services,
  authenticator: Authenticator,
  req: Request,
  res: Response,
): Promise<void> {
  const { accountId } = requireAccount(await authenticateForFiles(authenticator, req, 'messages:write'));
  if (mediaType(req.headers['content-type']) === 'multipart/form-data') {
    const sentence = 'The body is the file itself: send it without a form (curl --data-binary @file, not -F)';
    throw new KlatchError('unsupported_media', { sentence });
  }
  const name = new URLSearchParams(req.url.split('?', 2)[1] ?? '').get('name') ?? '';
  const file = await services.uploads.storeFile({
    accountId,
    conversationId: null,
    name,
    announcedBytes: announcedBytes(req),
    bytes: () => beginUploadBody(req, res),
  });
  sendJson(res, 201, file);
}
