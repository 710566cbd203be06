/** A client's batches wait in another line than its single requests, which are not to wait behind all of those. */
export const batchFlow = (address: string): string => `batch ${address}`
