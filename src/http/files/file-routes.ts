import { Router, type Request, type RequestHandler, type Response } from 'express';
import { SourceAbortedError } from '../../files/upload-stream.ts';
import type { Services } from '../../operations/core/services.ts';
import { setAuthChallenge, type Authenticator } from '../authenticator.ts';
import { authorizeFileByLink, authorizeFileBySession } from './file-auth.ts';
import { drainBodyBrieflyThenDisconnect } from './file-body.ts';
import { Downloads } from './file-download.ts';
import { uploadFile } from './file-upload.ts';
import { sendMethodNotAllowed, sendThrownError } from '../responses.ts';
import { Tus, exposedTusHeaders } from './tus.ts';

type FileHandler = (req: Request, res: Response) => Promise<void>;

/**
 * Headers of answers about files that pages of other origins may read, in addition to those that every page may read.
 */
export const exposedFileHeaders = [
  ...exposedTusHeaders,
  'ETag',
  'Content-Range',
  'Content-Disposition',
  'Accept-Ranges',
];

/** Serves `/v1/files` and all paths below it: uploads in one request, resumable uploads, and downloads. */
export function fileRoutes(services: Services, authenticator: Authenticator): Router {
  const tus = new Tus(services, authenticator);
  const downloads = new Downloads(services);
  const withErrors = (handler: FileHandler): RequestHandler => withErrorResponse(services, handler);
  const downloadHandler = (authorize: typeof authorizeFileBySession): RequestHandler =>
    withErrors(async (req, res) => {
      if (req.method !== 'GET' && req.method !== 'HEAD') sendMethodNotAllowed(req, res, ['GET', 'HEAD']);
      else await downloads.send(req, res, await authorize(services, authenticator, req));
    });
  const uploadHandler = withErrors(async (req, res) => {
    if (req.method === 'POST') await uploadFile(services, authenticator, req, res);
    else sendMethodNotAllowed(req, res, ['POST']);
  });
  const resumableUploadHandler = withErrors((req, res) => tus.serve(req, res));
  const router = Router({ caseSensitive: true });
  router.all('/', uploadHandler);
  router.all('/uploads', resumableUploadHandler);
  router.all('/uploads/:id', resumableUploadHandler);
  router.all('/:id', downloadHandler(authorizeFileBySession));
  router.all('/:id/:name', downloadHandler(authorizeFileByLink));
  return router;
}

function withErrorResponse({ log }: Services, handler: FileHandler): RequestHandler {
  return async (req, res) => {
    try {
      await handler(req, res);
    } catch (error) {
      if (error instanceof SourceAbortedError) {
        // The client has left, or the listener has sent the error already.
        res.destroy();
        return;
      }
      setAuthChallenge(req, res, error);
      sendThrownError(res, error, { log });
    }
    drainBodyBrieflyThenDisconnect(req);
  };
}
