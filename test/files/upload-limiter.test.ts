import { expect, test } from '@jest/globals';
import type { UploadStream } from '../../src/files/upload-stream.ts';
import { UploadLimiter } from '../../src/files/upload-limiter.ts';
import type { AccountId } from '../../src/model/ids.ts';

const [ANNA, BERTA, CARLA, DORA] = [1, 2, 3, 4] as AccountId[];
const brought = (total: number): UploadStream => ({ receivedBytes: total }) as UploadStream;
const GIB = 1024 ** 3;

test('the upload that brought the least in its time ends, however old it is', async () => {
  const places = new UploadLimiter({ total: 3, perOwner: 1 });
  const [old, slow, young] = [await places.take(ANNA!), await places.take(BERTA!), await places.take(CARLA!)];
  old.measureSpeedOf(brought(100 * GIB));
  young.measureSpeedOf(brought(100 * GIB));
  const taking = places.take(DORA!);
  expect([old, slow, young].map(({ isEvicted: isEnding }) => isEnding)).toEqual([false, true, false]);
  expect(slow.signal.reason).toMatchObject({ code: 'too_many_uploads' });
  places.release(slow);
  await taking;
  expect(places.running).toBe(3);
});

test('a place that was made free is of the upload that waits for it, and there is never one more', async () => {
  const places = new UploadLimiter({ total: 1, perOwner: 1 });
  const first = await places.take(ANNA!);
  const taking = places.take(BERTA!);
  // The only place is already reserved.
  await expect(places.take(CARLA!)).rejects.toMatchObject({ code: 'too_many_uploads' });
  places.release(first);
  await expect(places.take(CARLA!)).rejects.toMatchObject({ code: 'too_many_uploads' });
  const second = await taking;
  places.release(first);
  expect(places.running).toBe(1);
  places.release(second);
  places.release(await places.take(CARLA!));
  expect(places.running).toBe(0);
});

test('an upload that does not end keeps its place, and the new one is refused', async () => {
  const places = new UploadLimiter({ total: 1, perOwner: 1 });
  const stuck = await places.take(ANNA!);
  await expect(places.take(BERTA!)).rejects.toMatchObject({ code: 'too_many_uploads' });
  places.release(stuck);
  // The place and the share of its owner are free again.
  places.release(await places.take(BERTA!));
  expect(places.running).toBe(0);
});
