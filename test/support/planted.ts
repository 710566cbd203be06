/** A fault in a text: a part of it that is removed or weakened, and what stands there instead. */
export type Fault = { readonly name: string; readonly right: string; readonly wrong: string }

/** The text with the fault. */
export const planted = (text: string, { name, right, wrong }: Fault): string => {
  const parts = text.split(right)
  if (parts.length !== 2) throw new Error(`${name}: its text is there ${parts.length - 1} times`)
  return parts.join(wrong)
}
