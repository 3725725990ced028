"""Step 2: experiments on throw-away runs that tell what each component costs."""
