import type { SiteUnderTest } from '../site-under-test.ts'

/**
 * Something a user's program does, with its expectations. Each runs directly against WordPress first, then through the
 * gateway: what holds there must hold here. A step makes what it needs and removes it again.
 */
export type Step = { readonly title: string; run(site: SiteUnderTest): Promise<void> }

/** Counts of the seeded content that the steps rely on (test/real/wordpress/seed.php). */
export const seeded = { publicPosts: 106, pages: 10, media: 4, blocks: 4, menuItems: 8 } as const

let names = 0

/** A text that no other content holds. */
export function uniqueText(): string {
  names += 1
  return `quince${process.pid}x${names}`
}
