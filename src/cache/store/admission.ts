import { createHmac, randomBytes } from 'node:crypto'

/** `second-request`: while the cache is nearly full, a response is stored from the second request for its key on. */
export type AdmissionMode = 'always' | 'second-request'

/** Responses that are requested once must not evict those that are requested often. */
export type Admission = {
  admits(key: string): boolean
  /** A build reads everything once: its responses evict none. */
  admitsOfBuild(): boolean
}

type AdmissionOptions = {
  readonly mode: AdmissionMode
  /** Of the space for stored responses. */
  readonly usedShare: () => number
}

/** From this share on the cache is nearly full. */
const fullShare = 0.9

/** Of 4 bytes each: more keys shorten the memory of earlier ones and never enlarge it. */
const slots = 65_536

/**
 * Keeps a fingerprint of each first request in a slot, both from a salted hash, so that no client can aim at the slots of other
 * keys. A newer key overwrites the slot of an older one, which then needs another request.
 */
export const createAdmission = ({ mode, usedShare }: AdmissionOptions): Admission => {
  const admitsOfBuild = (): boolean => usedShare() < fullShare
  if (mode === 'always') return { admits: () => true, admitsOfBuild }
  const salt = randomBytes(16)
  const fingerprints = new Uint32Array(slots)

  return {
    admitsOfBuild,
    admits: (key) => {
      if (usedShare() < fullShare) return true
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
