import { Router, type Request, type RequestHandler, type Response } from 'express';
import { SourceCutError } from '../files/inflow.ts';
import type { Services } from '../operations/services.ts';
import { challenge, type Door } from './door.ts';
import { admitByLink, admitBySession } from './file-access.ts';
import { endBody } from './file-body.ts';
import { Downloads } from './file-download.ts';
import { uploadFile } from './file-upload.ts';
import { refuseMethod, showError } from './problems.ts';
import { Tus, tusHeaders } from './tus.ts';

type FileHandler = (req: Request, res: Response) => Promise<void>;

/** What pages of other origins may read of answers about files, beside what every page may. */
export const exposedFileHeaders = [...tusHeaders, 'ETag', 'Content-Range', 'Content-Disposition', 'Accept-Ranges'];

/** Everything below `/v1/files`: storing a file, resumable uploads, and files for who may read them. */
export function fileRoutes(services: Services, door: Door): Router {
  const tus = new Tus(services, door);
  const downloads = new Downloads(services);
  const withProblems = (handler: FileHandler): RequestHandler => showingProblems(services, handler);
  const reads = (admit: typeof admitBySession): RequestHandler =>
    withProblems(async (req, res) => {
      if (req.method !== 'GET' && req.method !== 'HEAD') refuseMethod(req, res, ['GET', 'HEAD']);
      else await downloads.send(req, res, await admit(services, door, req));
    });
  const store = withProblems(async (req, res) => {
    if (req.method === 'POST') await uploadFile(services, door, req, res);
    else refuseMethod(req, res, ['POST']);
  });
  const resume = withProblems((req, res) => tus.serve(req, res));
  const router = Router({ caseSensitive: true });
  router.all('/', store);
  router.all('/uploads', resume);
  router.all('/uploads/:id', resume);
  router.all('/:id', reads(admitBySession));
  router.all('/:id/:name', reads(admitByLink));
  return router;
}

function showingProblems({ log }: Services, handler: FileHandler): RequestHandler {
  return async (req, res) => {
    try {
      await handler(req, res);
    } catch (error) {
      if (error instanceof SourceCutError) {
        // Nobody is there to hear it, or the listener has said it.
        res.destroy();
        return;
      }
      challenge(req, res, error);
      showError(res, error, { log });
    }
    endBody(req);
  };
}
