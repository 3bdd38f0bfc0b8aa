/** The number of rows of a block. `RowHeights` stores the sum of the heights of each block. */
const BLOCK_ROWS = 256;
/**
 * The greatest sum of the estimated heights of all rows, because browsers draw no element that is much higher. In a
 * long conversation the estimate of each row is smaller for that.
 */
const MAX_ESTIMATED_TOTAL_PX = 12_000_000;
const USUAL_ROW_HEIGHT_PX = 52;

/**
 * The heights of the rows of a list, in pixels. A row that was not measured yet has an estimated height. Finding a row
 * takes time in proportion to the number of blocks, which is 400 for 100,000 rows.
 */
export class RowHeights {
  /** The height of each row; 0: not measured. */
  #heights = new Float32Array(BLOCK_ROWS);
  #blockSums: number[] = [0];
  #measuredRowCounts: number[] = [0];
  #rowCount = 0;

  get count(): number {
    return this.#rowCount;
  }

  get totalHeight(): number {
    return this.offsetOf(this.#rowCount);
  }

  /** Sets the number of rows, and forgets the heights of rows after the new end. */
  setRowCount(count: number): void {
    for (let index = count; index < this.#rowCount; index += 1) this.#write(index, 0);
    this.#rowCount = count;
    const blockCount = Math.max(1, Math.ceil(count / BLOCK_ROWS));
    while (this.#blockSums.length < blockCount) {
      this.#blockSums.push(0);
      this.#measuredRowCounts.push(0);
    }
    if (this.#heights.length >= blockCount * BLOCK_ROWS) return;
    const larger = new Float32Array(Math.max(blockCount * BLOCK_ROWS, this.#heights.length * 2));
    larger.set(this.#heights);
    this.#heights = larger;
  }

  /** Records a measured height, which is above 0. Returns whether the height of the row has changed. */
  set(index: number, height: number): boolean {
    if (index >= this.#rowCount || Math.abs(this.heightOf(index) - height) < 0.01) {
      if (index < this.#rowCount && this.#heights[index] === 0) this.#write(index, height);
      return false;
    }
    this.#write(index, height);
    return true;
  }

  heightOf(index: number): number {
    const height = this.#heights[index] ?? 0;
    return height === 0 ? this.#estimate() : height;
  }

  /** The offset at which a row begins; for `count`, the offset at which the last row ends. */
  offsetOf(index: number): number {
    const estimate = this.#estimate();
    const wholeBlocks = Math.floor(index / BLOCK_ROWS);
    let offset = 0;
    for (let block = 0; block < wholeBlocks; block += 1) offset += this.#blockHeight(block, estimate);
    for (let row = wholeBlocks * BLOCK_ROWS; row < index; row += 1) offset += this.#heights[row] || estimate;
    return offset;
  }

  /** The row at an offset; for an offset beyond an end, the first or the last row. */
  indexAt(offset: number): number {
    const estimate = this.#estimate();
    let remainingPx = offset;
    let row = 0;
    for (let block = 0; row + BLOCK_ROWS < this.#rowCount; block += 1) {
      const height = this.#blockHeight(block, estimate);
      if (height > remainingPx) break;
      remainingPx -= height;
      row += BLOCK_ROWS;
    }
    for (; row < this.#rowCount - 1; row += 1) {
      const height = this.#heights[row] || estimate;
      if (height > remainingPx) break;
      remainingPx -= height;
    }
    return row;
  }

  /** Forgets all measurements, for a list of another width. */
  clear(): void {
    this.#heights.fill(0);
    this.#blockSums.fill(0);
    this.#measuredRowCounts.fill(0);
  }

  #write(index: number, height: number): void {
    const block = Math.floor(index / BLOCK_ROWS);
    const before = this.#heights[index]!;
    this.#blockSums[block]! += height - before;
    this.#measuredRowCounts[block]! += (height === 0 ? 0 : 1) - (before === 0 ? 0 : 1);
    this.#heights[index] = height;
  }

  #blockHeight(block: number, estimate: number): number {
    const rows = Math.min(BLOCK_ROWS, this.#rowCount - block * BLOCK_ROWS);
    return this.#blockSums[block]! + (rows - this.#measuredRowCounts[block]!) * estimate;
  }

  #estimate(): number {
    return Math.min(USUAL_ROW_HEIGHT_PX, MAX_ESTIMATED_TOTAL_PX / Math.max(1, this.#rowCount));
  }
}
