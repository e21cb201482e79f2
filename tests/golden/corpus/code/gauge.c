#include <stdio.h>

/* The mean of the readings, in tenths of a millimetre. */
int main(void) {
	int sum = 0, n = 0, reading;
	while (scanf("%d", &reading) == 1) {
		sum += reading;
		n++;
	}
	printf("%d\n", n ? sum / n : 0);
	return 0;
}
