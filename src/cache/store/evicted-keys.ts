/** Bits of the map; with 64 KiB a cache that has evicted ten thousand responses takes one in fifty others for one of them. */
const bits = 1 << 19

/** FNV-1a. */
const positionOf = (key: string): number => {
  let hash = 0x811c9dc5
  for (let at = 0; at < key.length; at += 1) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193)
  return (hash >>> 0) % bits
}

/** Which keys were evicted since they were stored: a map of bits, since what was evicted must not take the memory of what is stored. */
export class EvictedKeys {
  #map: Uint8Array | undefined

  add(key: string): void {
    this.#map ??= new Uint8Array(bits / 8)
    const at = positionOf(key)
    this.#map[at >> 3] = (this.#map[at >> 3] ?? 0) | (1 << (at & 7))
  }

  /** The key is stored again. */
  delete(key: string): void {
    if (this.#map === undefined) return
    const at = positionOf(key)
    this.#map[at >> 3] = (this.#map[at >> 3] ?? 0) & ~(1 << (at & 7))
  }

  has(key: string): boolean {
    if (this.#map === undefined) return false
    const at = positionOf(key)
    return ((this.#map[at >> 3] ?? 0) & (1 << (at & 7))) !== 0
  }
}
