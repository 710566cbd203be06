import { createHmac, randomBytes } from 'node:crypto'

/** `second-request`: what is asked for the first time is not kept while the cache is nearly full. */
export type AdmissionMode = 'always' | 'second-request'

/** Decides which responses get a place: those that nobody asks for again must not push out those that many do. */
export type Admission = {
  /** True when there is room, or when the key was asked for before. */
  admits(key: string): boolean
}

export type AdmissionOptions = {
  readonly mode: AdmissionMode
  readonly maxBytes: number
  readonly storedBytes: () => number
}

/** From this share of `maxBytes` on a place has to be earned. */
const fullShare = 0.9

/** Of 4 bytes each, taken once and for all: a flood of keys makes this memory shorter, never larger. */
const slots = 65_536

/**
 * First requests are remembered as a fingerprint in a slot, both from a hash that nobody outside can compute: a flood
 * cannot aim at the slots of others. A newer key takes the slot of an older one, which then has to ask once more.
 */
export const createAdmission = ({ mode, maxBytes, storedBytes }: AdmissionOptions): Admission => {
  if (mode === 'always') return { admits: () => true }
  const salt = randomBytes(16)
  const fingerprints = new Uint32Array(slots)

  return {
    admits: (key) => {
      if (storedBytes() < maxBytes * fullShare) return true
      const hash = createHmac('sha256', salt).update(key).digest()
      const slot = hash.readUInt32LE(0) % slots
      // 0 is an empty slot.
      const fingerprint = hash.readUInt32LE(4) || 1
      if (fingerprints[slot] === fingerprint) return true
      fingerprints[slot] = fingerprint
      return false
    },
  }
}
