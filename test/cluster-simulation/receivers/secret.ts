/** For purges of Next.js, and of webhooks. */
export const receiverSecret = 'a secret of thirty-two characters'
